create table t (id int primary key, name text not null, amount numeric(10, 2) default 1.5, at timestamp);
create table t (id int);
create table if not exists t (id int);
select * from t;
insert into t values (1, 'one', 10, '2024-02-29 12:00');
insert into t (id, name) values (2, 'two'), (3, 'three');
insert into t (name, id) values ('four', 4) returning *;
insert into t values (5, 'five', default, null) returning id, amount * 2 as twice;
select * from t order by id;
select * from t where id = 3;
select * from t where id = 3::bigint;
select name from t where id between 2 and 4 order by id;
select name from t where id > 2 and id < 5 order by id;
select name from t where 2 < id and 5 >= id order by id;
select name from t where id = null;
select name from t where id = 5000000000;
select name from t where id < 5000000000 order by id;
select name from t where id > 5000000000;
select count(*), sum(amount), min(name), max(at) from t;
select amount, count(*) from t group by amount order by amount;
select t.name, u.name from t join t u on u.id = t.id + 1 order by t.id;
select t.name, u.name from t left join t u on u.id = t.id + 1 order by t.id;
select name from t where exists (select 1 from t u where u.id = t.id + 2) order by name;
select name, (select name from t u where u.id = t.id - 1) as before from t order by id;
select id from t where id in (select id + 1 from t) order by 1;
with big as (select * from t where amount > 1.5) select name from big;
select * from (select id, name from t) s where id = 2;
insert into t values (1, 'again');
insert into t values (6, null);
insert into t values (6);
insert into t (id, nothing) values (6, 1);
insert into t (id, id) values (6, 1);
insert into t values (6, 'six', 1, null, 5);
insert into t (id, name) values (6);
insert into t values ('x', 'six');
insert into t values (true, 'six');
insert into t values (6, 'six', 123456789.5);
insert into t values (6, 'six', 1.999);
insert into t values (7, 'seven'), (7, 'seven');
select id, amount from t where id > 5;
insert into t values (1, 'one again') on conflict do nothing;
insert into t values (1, 'one again') on conflict (id) do nothing returning id;
insert into t values (1, 'one again'), (8, 'eight') on conflict (id) do update set name = excluded.name || '!', amount = t.amount + 1 returning *;
insert into t values (8, 'no') on conflict (id) do update set name = excluded.name where t.id > 8;
insert into t values (9, 'a'), (9, 'b') on conflict (id) do update set name = excluded.name;
insert into t values (9, 'a') on conflict (name) do nothing;
insert into t values (9, 'a') on conflict on constraint t_pkey do nothing;
insert into t values (9, 'a') on conflict on constraint nothing do nothing;
insert into t values (9, 'a') on conflict do update set name = 'b';
insert into t select id + 100, name, amount from t where id < 3 returning id, name;
insert into t (id, name) select g, 'row ' || g from generate_series(200, 204) g;
select count(*) from t where id >= 200;
update t set amount = amount + 1 where id = 1;
update t set amount = default, name = upper(name) where id in (1, 2) returning id, name, amount;
update t set id = id + 1000 where id >= 200;
update t set id = 1 where id = 2;
update t set id = id;
update t set name = null where id = 1;
update t set nothing = 1;
update t set name = 'a', name = 'b';
update t set name = 5 where id = 1 returning name;
update t as u set name = u.name || '?' where u.id = 1 returning u.name;
update t set name = s.name from (values (1, 'first'), (2, 'second')) s (id, name) where s.id = t.id;
select id, name from t where id < 3 order by id;
update t set amount = (select max(amount) from t) where id = 3 returning amount;
update nothing set a = 1;
delete from t where id > 1000 returning id;
delete from t using (values (101), (102)) s (id) where s.id = t.id;
delete from t where id = 77;
delete from t where nothing = 1;
delete from nothing;
select count(*) from t;
create table pair (a int, b text, c float8, primary key (a, b));
insert into pair values (1, 'x', 1.5), (1, 'y', 'nan'), (2, 'x', '-0'), (2, '', null);
select * from pair order by a, b;
select * from pair where a = 1 order by b;
select * from pair where a = 2 and b = '';
select * from pair where a = 1 and b > 'x';
insert into pair values (1, 'x', 2);
insert into pair values (1, null, 2);
update pair set b = b || b where a = 1 returning *;
create table loose (a int, b int default 2 + 3, c text default 'x''y', d date default current_date);
insert into loose default values;
insert into loose values (1), (1), (null);
insert into loose (a) select null from generate_series(1, 3);
select a, b, c, d = current_date as today from loose order by a;
update loose set b = b + 1 where a = 1;
select b, count(*) from loose group by b order by b;
delete from loose where a is null;
select count(*) from loose;
truncate loose;
select count(*) from loose;
insert into loose values (9);
select a from loose;
drop table loose;
select * from loose;
drop table loose;
drop table if exists loose;
drop table t, pair;
create table t (a int, a text);
create table t (a int primary key, b int primary key);
create table t (a int, primary key (b));
create table t (a int, primary key (a, a));
create table t (a nothing);
create table t (a int default nothing);
create table t (a int default 'x');
create table t (a varchar(3), b char(3), c int[], d bytea, e bool, f interval, g uuid, h time, i timestamptz, j real, k smallint, l bigint, primary key (a));
insert into t values ('abc', 'x', '{1,2,null}', '\x00ff', true, '1 day 2 hours', '00000000-0000-0000-0000-000000000001', '12:34:56', '2024-01-01 00:00+00', 1.5, 1, 2);
insert into t (a) values ('abcd');
insert into t (a, k) values ('b', 40000);
set timezone = 'UTC';
select * from t;
select a, b || '|', length(b), c[2] from t;
drop table t;
create table t (a text primary key);
insert into t select 'k' || g from generate_series(1, 1000) g;
select count(*), min(a), max(a) from t;
select a from t where a > 'k99' order by a limit 3;
select count(*) from t where a >= 'k5' and a < 'k6';
delete from t where a like 'k1%';
select count(*) from t;
drop table t;
create table t (a int primary key, b text, c numeric(4, 1) default 7);
copy t from stdin;
1	one	1.5
2	\N	\N
3	a\tb\\	2.25
\.
copy t (a, b) from stdin with (format csv, header);
a,b
4,"four, ""quoted"""
5,
6,""
\.
copy t to stdout;
copy t to stdout (format csv, header);
copy (select a * 2, b from t where a < 3 order by a) to stdout;
copy t (b, a) to stdout with (delimiter '|', null 'nothing');
copy t from stdin;
7	seven
\.
copy t from stdin;
7	seven	1	more
\.
copy t from stdin;
seven	seven	1
\.
copy t from stdin;
7	seven	1
1	one	1
\.
copy nothing from stdin;
copy t (nothing) from stdin;
select count(*) from t;
begin;
copy t from stdin;
8	eight	1
\.
select b from t where a = 8;
rollback;
copy t from stdin \; select count(*) from t;
9	nine	1
\.
drop table t;
create table t (a int, b text);
insert into t values (2, 'two'), (1, 'one');
alter table t add primary key (a);
insert into t values (1, 'again');
select * from t where a = 1;
alter table t add primary key (b);
drop table t;
create table t (a int, b text);
insert into t values (2, 'two'), (2, 'two');
alter table t add primary key (a);
update t set a = null where b = 'none';
insert into t values (null, 'none');
select count(*) from t;
vacuum analyze t;
vacuum;
analyze t;
begin; vacuum;
rollback;
drop table t;
create table a (i int primary key, x int);
create table b (i int primary key);
create table c (id int primary key);
insert into a values (1, 1), (2, 2), (3, 0);
insert into b values (1);
insert into c values (1), (2), (5);
select * from a join (b cross join c) on c.id = a.x order by a.i;
select * from a, b join c on true where c.id = a.x order by a.i;
select * from a left join (b join c on true) on c.id = a.x order by a.i;
select * from a, c where a.x <> 0 and c.id = 10 / a.x order by a.i;
select count(*) from c where id in (select x from a where i > (select min(i) from b));
delete from a using b join c on true where c.id = a.x;
select * from a;
insert into a values (1, 1);
insert into a values (1, 5), (2, 6) on conflict (i) do update set i = 2, x = 7;
select * from a order by i;
create table big (i int primary key);
insert into big select generate_series(1, 1000);
insert into a values ((select count(*) from big), 0);
values ((select count(*) from big), (select max(i) from big));
select * from (values ((select count(*) from big))) v (n);
select i from big where i = 5 union all select i from big where i = 6 limit 1;
select exists (select 1 from big) as yes, (select i from big order by i desc limit 1) as most;
create table texts (t text primary key);
insert into texts values ('a'), ('b');
select * from texts where t = repeat('x', 5000);
select * from texts where t < repeat('x', 5000) order by t;
select * from texts where t > repeat('x', 5000);
create table loose (n int);
insert into loose select g from generate_series(1, 2000) g on conflict do nothing;
select count(*), count(distinct n) from loose;
drop table a, b, c, big, texts, loose;
