create table t (a int check (a > 0), b int, c text constraint named check (c <> ''), check (a < b), constraint two check (a + b < 100), check (1 = 1));
insert into t values (0, 1, 'x');
insert into t values (1, 1, 'x');
insert into t values (1, 2, '');
insert into t values (1, 2, repeat('x', 100)), (60, 61, null);
insert into t values (60, 61, repeat('é', 100));
insert into t values (null, null, null), (1, null, 'one'), (2, 3, 'two');
select * from t order by a;
update t set a = 0 where a = 1;
update t set b = a where a = 2;
update t set b = b + 1 where a = 2 returning b;
create table u (a int check (a in (select 1)));
create table u (a int check (count(a) > 1));
create table u (a int check (generate_series(1, a) > 1));
create table u (a int check (a));
create table u (a int check (b > 1));
create table u (a int constraint x check (a > 1), constraint x check (a > 2));
create table u (a int check (a > $1));
create table u (a int default (select 1));
create table u (a int null not null);
create table u (a int default 1 default 2);
create table u (id int primary key, a int check (u.a > 1), b int check (a > b), c int check (c > 1) check (c > 2));
insert into u values (1, null, 1, 2);
insert into u values (1, null, 1, 3);
insert into u values (1, 0, 1, 3);
insert into u values (1, 0, 1, 3) on conflict do nothing;
insert into u values (1, 5, 1, 3) on conflict (id) do update set a = 0;
insert into u values (1, 5, 1, 3) on conflict (id) do update set a = excluded.a returning *;
copy u from stdin;
2	2	1	3
3	2	1	1
\.
copy u from stdin with (format csv);
2,2,1,3
3,,1,7
\.
select * from u order by id;
create table v (a numeric(4, 1) check (a > 1.05), b timestamp check (b > '2024-01-01'), c varchar(5) check (length(c) > 1 and c like 'a%'), d bool check (d is not false), e int[] check (e[1] = 1), f int check (case when f > 1 then f < 5 else f is null end), g float8 check (g between 0 and 1 or g in (7, 8)), h text check (coalesce(h, 'x') = 'x' and h is distinct from 'y'));
insert into v values (1.06, '2024-01-02', 'ab', null, '{1,2}', 3, 0.5, null);
insert into v (a) values (1.04);
insert into v (b) values ('2023-12-31');
insert into v (c) values ('a');
insert into v (c) values ('b1');
insert into v (d) values (false);
insert into v (e) values ('{2}');
insert into v (f) values (5);
insert into v (f) values (1);
insert into v (g) values (2);
insert into v (h) values ('y');
create table w (a int check (a > 0), check (a < 10));
insert into w (a) select g from generate_series(1, 10) g;
select count(*) from w;
begin;
insert into w values (5);
savepoint s;
insert into w values (50);
rollback to s;
insert into w values (6);
commit;
select a from w order by a;
drop table t, u, v, w;
