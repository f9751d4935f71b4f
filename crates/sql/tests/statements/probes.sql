select 2147483647::int + 1
select sum(x) from (values (9223372036854775807::bigint), (1)) t(x)
select 0.1::numeric + 0.2
select 1::numeric/3
select 12345678901234567890123456789012345678901234567890::numeric * 2
select '5' + 3
select to_char('2024-03-05 06:07:08'::timestamp, 'YYYY')
select 'abc' similar to 'a%'
select ARRAY(select x from generate_series(1,3) x)
select x, (select count(*) from generate_series(1,5) y where y <= x) from generate_series(1,3) x
select * from generate_series(1,3) a, lateral (select a * b as p from generate_series(1,4) b limit 2) s
select 1/3, 2/3
select 1/0
select 'x'::int
select sum(x), avg(x) from generate_series(1,10) x
