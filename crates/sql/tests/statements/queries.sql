select
select 1 as a, 2 b, 3 as "C d"
select 1 where true
select 1 where false
select 1 where null
select 1 where 1
select 1 limit 0
select x from generate_series(1,5) x
select * from generate_series(1,10,3)
select * from generate_series(5,1,-2) as t
select * from generate_series(1.0, 2.0, 0.5) x
select * from generate_series(timestamp '2024-01-01', '2024-01-03', '1 day') d
select * from generate_series(timestamptz '2024-01-01 00:00+00', '2024-01-01 03:00+00', '1 hour')
select * from generate_series(1,5,0)
select * from generate_series(1,3) with ordinality
select generate_series(1,3)
select generate_series(1,3), generate_series(1,2)
select generate_series(1,3) * 2 as x, 'a'
select generate_series(1, generate_series(1,3))
select x, x*2 as y from generate_series(1,3) x order by y desc
select x from generate_series(1,5) x order by x desc limit 2 offset 1
select x from generate_series(1,5) x order by -x
select x from generate_series(1,5) x order by 2
select x from generate_series(1,5) x order by 1.5
select x from generate_series(1,5) x order by 'a'
select x from generate_series(1,5) x limit -1
select x from generate_series(1,5) x offset -1
select x from generate_series(1,5) x limit 'a'
select x from generate_series(1,5) x limit 2.5
select x from generate_series(1,5) x limit null
select x from generate_series(1,5) x limit all
select x from generate_series(1,5) x limit x
select x from generate_series(1,5) x fetch first 2 rows only
select x/2 from generate_series(1,6) x order by 1 fetch first 2 rows with ties
select x % 3 as m, count(*), sum(x) from generate_series(1,10) x group by m order by m
select x % 3, count(*) from generate_series(1,10) x group by x % 3 order by 1
select x % 3, count(*) from generate_series(1,10) x group by 1 order by 1
select x % 3 + 1, count(*) from generate_series(1,10) x group by x % 3 order by 1
select x, count(*) from generate_series(1,10) x
select x % 2, x from generate_series(1,10) x group by 1
select count(*) from generate_series(1,10) x having count(*) > 5
select count(*) from generate_series(1,10) x having count(*) > 50
select 1 having true
select count(*), count(x), count(distinct x % 3), sum(x), avg(x), min(x), max(x) from generate_series(1,10) x
select count(*), sum(x), avg(x), min(x), array_agg(x), string_agg(x::text, ',') from generate_series(1,0) x
select sum(x::smallint), sum(x::int), sum(x::bigint), sum(x::numeric), sum(x::float4), sum(x::float8), avg(x::smallint), avg(x::float8), avg(x::numeric), avg(x::float4) from generate_series(1,4) x
select sum(x * interval '1 hour'), avg(x * interval '1 day'), max(date '2024-01-01' + x) from generate_series(1,4) x
select string_agg(x::text, ','), string_agg(x::text, ',' order by x desc), string_agg(distinct (x%2)::text, '-') from generate_series(1,4) x
select bool_and(x > 0), bool_or(x > 3), every(x < 3), bit_and(x), bit_or(x), bit_xor(x) from generate_series(1,4) x
select count(*) filter (where x > 2), sum(x) filter (where x % 2 = 0) from generate_series(1,4) x
select variance(x), stddev(x), var_pop(x), stddev_pop(x), var_samp(x::float8), stddev_samp(x::float8), var_pop(x::float8), variance(x::numeric) from generate_series(1,5) x
select variance(x), stddev_pop(x) from generate_series(1,1) x
select sum(sum(x)) from generate_series(1,4) x
select count(*) where count(*) > 1
select x from generate_series(1,4) x where sum(x) > 1
select count()
select sum(*)
select sum('a')
select sum(true)
select upper(distinct 'a')
select abs(*)
select max(x) + min(x) * 2 from generate_series(1,4) x
select case when count(*) > 2 then 'many' else 'few' end from generate_series(1,4)
select distinct x % 3 as m from generate_series(1,10) x order by m
select distinct x % 3 as m, x % 2 as n from generate_series(1,10) x order by m, n
select distinct on (x % 3) x % 3, x from generate_series(1,10) x order by x % 3, x desc
select distinct x from generate_series(1,3) x order by x + 1
select distinct on (x) x from generate_series(1,3) x order by -x
values (1, 'a'), (2, 'b')
values (1), (2.5), (null)
values (1), ('a')
values (1), (true)
values (1, 2), (3)
values (1, 'b'), (2, 'a') order by 2
values (3), (1), (2) order by column1 desc limit 2
select * from (values (1, 'a'), (2, 'b')) as t(x, y) where y = 'b'
select t.* from (values (1, 'a')) as t
select t.x from (values (1)) as t(x)
select t.nosuch from (values (1)) as t(x)
select nosuch.x from (values (1)) as t(x)
select nosuch from (values (1)) as t(x)
select nosuch
select x from (values (1)) as a(x), (values (2)) as b(x)
select * from (values (1)) as a(x), (values (2)) as a(y)
select * from (values (1)) as a(x, y)
select a.x, b.x from (values (1), (2)) as a(x), (values (3), (4)) as b(x) order by 1, 2
select * from (values (1), (2)) a(x) join (values (2), (3)) b(y) on x = y
select * from (values (1), (2)) a(x) left join (values (2), (3)) b(y) on x = y order by 1
select * from (values (1), (2)) a(x) cross join (values (2), (3)) b(y) order by 1, 2
select * from (values (1)) a(x) join (values (2)) b(y) on x
select * from (select 1 as a) s
select * from (select 1)
select 1 union select 2 order by 1
select 1 union all select 1
select 1 union select 1
select 1 union select 'a'
select 1 union select '2' order by 1
select 1 union select 2.5 order by 1
select null union select 1 order by 1
select 'a' union select 'b' order by 1
select 1, 2 union select 3
select 1 union select true
select 1 intersect select 1
select 1 except select 2
select x from generate_series(1,5) x intersect select y from generate_series(3,8) y order by 1
select x from generate_series(1,5) x except select y from generate_series(3,8) y order by 1
select x%2 from generate_series(1,5) x except all select 1 order by 1
select x%2 from generate_series(1,5) x intersect all select y%2 from generate_series(1,3) y order by 1
select 1 as a union select 2 as b order by a
select 1 as a union select 2 as b order by b
select 1 as a union select 2 order by a + 1
(select 1 limit 1) union all (select 2) limit 5
select (select 1), (select null), (select 1 where false), (select 'a')
select (select x from generate_series(1,2) x)
select (select 1, 2)
select exists(select 1), exists(select 1 where false), not exists(select 1)
select 1 in (select x from generate_series(1,3) x), 5 in (select x from generate_series(1,3) x), null in (select 1), 1 not in (select 2), 5 not in (select null)
select 1 = any(select x from generate_series(1,3) x), 1 < all(select x from generate_series(2,3) x), 1 = all(select 1 where false)
select (1, 2) in (select 1, 2), (1,2) in (select 1, 3)
select 1 in (select 1, 2)
select x, (select sum(y) from generate_series(1, x) y) from generate_series(1,3) x
select x from generate_series(1,5) x where exists (select 1 from generate_series(2,3) y where y = x)
select x from generate_series(1,5) x where x > (select avg(y) from generate_series(1,5) y)
select array(select x * 2 from generate_series(1,3) x order by 1 desc)
select * from generate_series(1,3) a, generate_series(1,a) b order by a, b
select * from generate_series(1,2) a left join lateral (select a + 10 as c where a > 1) s on true order by 1
with t as (select 1 as x) select * from t
with t(a, b) as (values (1, 2), (3, 4)) select b, a from t order by b desc
with a as (select 1 as x), b as (select x + 1 as y from a) select * from a, b
select * from nosuch
select * from nosuch.tab
select *
select 1 as x order by x
select 2 as x, 1 as x order by x
select x as y, -x as x from generate_series(1,3) x order by x
select x + 1 as x from generate_series(1,3) x group by x order by x
select count(*) as n from generate_series(1,10) x group by x % 3 having count(*) > 3
select 1 group by 2
select sum(x) as s from generate_series(1,3) x group by s
select current_user, session_user, user, current_role, current_database(), current_schema, current_schemas(true), current_catalog, current_schema()
select current_setting('nosuch')
select current_setting('nosuch', true)
select pg_is_in_recovery(), pg_client_encoding(), pg_encoding_to_char(6)
select 'a' as "select", 1 as int4
select true, false, 1::int, '1'::varchar(3), 1.5::numeric(5,2), now() is null, coalesce(1), nullif(1,2), greatest(1), least(1), array[1], row(1), exists(select 1), (select 1 as q), case when true then 1 end, case when true then 1 else now()::text end, 'a' || 'b', -1, not true, (array[1])[1], extract(year from date '2024-01-01'), 'a' collate "C", cast(upper('a') as text), 1 is null
select trim('a'), substring('a' from 1), position('a' in 'a'), overlay('a' placing 'b' from 1), timestamp '2024-01-01' at time zone 'UTC', date '2024-01-01', interval '1 day', current_date is null, localtime is null
select 1 + (2 * 3) - 4 / 2 % 3 ^ 2
select -2 ^ 2, 2 ^ 3 ^ 2, - 2 ^ 2.0
select '1'::int + '2'::int, 1::text::int
select 'x' || 1 + 2
select 1::int4::int8::numeric::float8::text
select cast(null as int), null::text, null + 1, null || 'a', null = null
select null + null
select null::int in (1), coalesce(null::int, 5)
select nullif(null, 1), nullif(1, null)
select xyz(1, 'a', 1.5, null)
select 1 operator(pg_catalog.+) 2
select 1 *** 2
select *** 2
select |/ 25, @ -5, ~ 5
select generate_series(1,2) where generate_series(1,2) > 1
select case when generate_series(1,2) > 1 then 1 end
select sum(x order by x) from generate_series(1,3) x
select 1/0 where false
select case when true then 1 else 1/0 end, case when false then 1/0 end, coalesce(1, 1/0), false and 1/0 = 1, true or 1/0 = 1
select case when x > 5 then 1/0 else x end from generate_series(1,2) x
select x from generate_series(1,2) x where x > 1/0
select null + 1/0
select case 1 when 1 then 'a' when 1/0 then 'b' end
select case x when 1 then 'one' when 2 then 'two' end from generate_series(1,3) x
select case 2.0 when 2 then 'two' end, case 'a' when 'a' then 1 end, case null when null then 1 else 2 end, case array[1] when array[1] then 1 end
select coalesce('ab'::char(4), 'foo'::name), 'ab'::char(4)::name || 'x'
-- What has no type in common, and where a literal with a type stands.
(select 100, array[1]) intersect (values (100, array_remove(null, null)))
(values (100, array_remove(null, null))) intersect (select 100, array[1])
select array[1] union select array['a']
select array[1] union select array['a'::text]
select array['a'::text] union all select array[1]
select 1 union select 'a'::text
select 1 union select true
values (array[1]), (array['a'::text])
select coalesce(array[1], array['a'::text])
select case when true then array[1] else array['a'::text] end
select array[array[1], array['a'::text]]
select greatest(array[1], array['a'::text])
select array[1] except (select array['a'::text] union select array[2])
select * from (select 1, array[1] union select 2, array['a'::text]) q
select * from (values (array[1]), (array['a'::text])) q
select array[1] in (array['a'::text], array[2])
select date '2024-01-01' union select time '10:00'
select array[date '2024-01-01'] union select array[timestamp '2024-01-01']
select array[timestamp '2024-01-01'] union select array[date '2024-01-01']
select coalesce(date '2024-01-01', time '10:00')
select coalesce(time '10:00', date '2024-01-01')
select coalesce(1, cast('2024-01-01' as date))
select case when true then 1 else date '2024-01-01' end
select 1 union select date '2024-01-01'
select 1 union select numeric(8, 2) '1.5' union select true
select true union select numeric(8, 2) '1.5'
select true union select cast('1.5' as numeric(8, 2))
select true union select '1.5'::numeric(8, 2)
select true union select cast('1.5' as varchar(8))
select true union select cast(1 as numeric)
select true union select cast(1 as text)
select true union select interval '1' day
select true union select interval(3) '1 day'
select true union select timestamp(3) '2024-01-01'
select true union select cast(null as int)
select true union select int '1'
select 1 where date '2024-01-01'
select 1 where cast('1' as int)
select 1 limit date '2024-01-01'
select 1 where not cast('1' as int)
select array[1, date '2024-01-01']
select array[cast('1' as int), true]
select 1 in (1, date '2024-01-01')
select 1 in (date '2024-01-01', 2)
select array[1] in (array['a'::text], array[2])
select 1 in (2, 'a'::text)
select 1 in (2, 3.5, 'a'::text)
select 1 not in (2, 'a'::text)
select date '2024-01-01' in (timestamp '2024-01-01', '2024-01-01')
select case 1 when 2 then array[1] else array['a'::text] end
select case 1 when 2 then array['a'::text] when 3 then array[1] else array['a'::text] end
select case when true then array['a'::text] end = case when true then array[1] when false then array['a'::text] end
select (array[1])[date '2024-01-01']
