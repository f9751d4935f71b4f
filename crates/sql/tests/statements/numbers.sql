select 1, 1.5, 1e10, 'a', null, true, 9223372036854775807, 9223372036854775808, -2147483648, 2147483648
select 7/2, -7/2, 7%3, -7%3, 7.0/2, 7.5%2, -7.5%2
select 5::smallint + 3::smallint, 5::smallint + 3, 5 + 3::bigint, 5::smallint * 3::bigint
select 32767::smallint + 1::smallint
select 9223372036854775807 + 1
select -9223372036854775807 - 2
select (-9223372036854775807-1) / -1
select (-2147483648) / -1
select (-2147483648) % -1
select -(-2147483648)::int
select abs(-2147483648)
select abs(-5), abs(-5.5), abs(-5.5::float8), @ -3
select 2147483647 * 2
select 3000000000::int
select '3000000000'::int
select '40000'::smallint
select ''::int
select ' 12 '::int, '+5'::int, '-0'::int
select '1.5'::int
select '1e3'::int
select 1.5::int, 2.5::int, -1.5::int, -2.5::int, 0.5::int
select 1.5::float8::int, 2.5::float8::int, -2.5::float8::int, 3.5::float4::int
select 1e20::float8::bigint
select 'NaN'::float8::int
select 'NaN'::numeric::int
select 'infinity'::numeric::int
select 1.0/3, 2.0/3, 10.0/3, 100.0/3, 1000000.0/3, 0.0001/3, 1/3.0, 22/7.0
select 1::numeric/3::numeric, 1.000::numeric/3, 123456789.123456789/0.000001
select 99999999999999999999999999999999999999 * 99999999999999999999999999999999999999
select 99999999999999999999999999999999999999 + 1
select 1234567890123456789012345678901234567890.123 / 7
select 1234567890123456789012345678901234567890 % 97, 5.5 % 0.3, -5.5 % 0.3
select div(7.5, 2), div(-7.5, 2), mod(7, 3), mod(7.5, 2)
select round(1.5), round(2.5), round(-1.5), round(1.245, 2), round(1234.5678, -2), round(1.2, 5), round(2.5::float8), round(-2.5::float8), round(5)
select trunc(1.789, 2), trunc(-1.789), trunc(1789.5, -2), trunc(1.7::float8), ceil(1.2), ceil(-1.2), floor(1.2), floor(-1.2), ceil(1.2::float8), floor(-0.5::float8), ceiling(4)
select sign(-5), sign(0.0), sign(5.5), sign(-2.5::float8)
select sqrt(2), sqrt(2::numeric), sqrt(2.0), sqrt(144::numeric), sqrt(0.0001), sqrt(123456789012345678901234567890.0), sqrt(0.0)
select sqrt(-1)
select sqrt(-1::numeric)
select exp(1), exp(1::numeric), exp(0.0), exp(-1.5), exp(10.5), exp(100.0)
select ln(2.0), ln(10.0), ln(0.5), ln(1.01), ln(123456789.123), ln(1.0), ln(2::float8)
select log(100.0), log(2.0, 64.0), log(2, 8), log(10, 0.001), log(100::float8), log(3.0, 7.0), log10(1000.0)
select ln(0)
select ln(-1.0)
select power(2, 10), power(2::numeric, 10), 2 ^ 10, 2.0 ^ 10, 2 ^ 0.5, 2.0 ^ 0.5, 2.0 ^ -1, 1.1 ^ 100, 10.0 ^ 20, 0.5 ^ 30, (-2.0) ^ 3, (-2.0) ^ -3, 2.0 ^ -30.0
select power(0.0, -1)
select power(-2.0, 0.5)
select power(0.0, 0.5), power(3.5, 2.5), power(100.0, -2.5), power(0.001, 3.3), 0.0 ^ 0
select factorial(5), factorial(20), factorial(30)
select factorial(-1)
select gcd(12, 18), lcm(4, 6), gcd(-12, 18), gcd(0, 0), lcm(0, 5), gcd(12.5, 7.5), lcm(1.5, 0.25)
select gcd((-2147483648)::int, 0)
select width_bucket(5.35, 0.024, 10.06, 5), width_bucket(0, 1, 10, 5), width_bucket(11, 1, 10, 5), width_bucket(5.0::float8, 0, 10, 3), width_bucket(3, 10, 1, 4)
select width_bucket(5, 1, 1, 5)
select width_bucket(5, 1, 10, 0)
select scale(1.50), min_scale(1.500), trim_scale(1.500), scale(5::numeric), trim_scale(100.00)
select '1.50'::numeric, '1e5'::numeric, '1.5e-5'::numeric, '.5'::numeric, '5.'::numeric, 'NaN'::numeric, '-Infinity'::numeric, 'inf'::numeric, ' 1 '::numeric
select '1e'::numeric
select 'abc'::numeric
select '1.2.3'::numeric
select ''::numeric
select 1.255::numeric(3,2), 1.2::numeric(5,3), 12345::numeric(7,-2), 0.00012::numeric(2,5), 99.5::numeric(2,0)
select 1000::numeric(3)
select 100.5::numeric(4,2)
select 1::numeric(1001)
select 1::numeric(5,2000)
select 'inf'::numeric(5,2)
select 'NaN'::numeric + 1, 'inf'::numeric - 'inf'::numeric, 'inf'::numeric * 0, 1 / 'inf'::numeric, 'inf'::numeric / 'inf'::numeric, -'inf'::numeric, 'inf'::numeric > 'NaN'::numeric
select 1 / 0.0
select 1 % 0
select 1.5 % 0
select 1::float8 / 0
select 'NaN'::float8 = 'NaN'::float8, 'NaN'::float8 > 'Infinity'::float8, 'NaN'::numeric = 'NaN'::numeric
select 1::float8/3, 1::float4/3, 0.1::float4, 0.1::float4::float8, 1e15::float8, 1e16::float8, 123456789012345678::float8, 1e-5::float8, 0.0001::float8, 1e6::float4, 1e5::float4, 123456789::float4, 1.5e300::float8, -0.0::float8, '-0'::float8
select 1e308::float8 * 10
select 1e-308::float8 * 1e-308
select '1e400'::float8
select '1e-400'::float8
select '1e40'::float4
select 1e40::float8::float4
select 1e-50::float8::float4
select 'abc'::float8
select ''::float8
select 'inf'::float8, '-infinity'::float8, 'nan'::float4
select 16777216::float4 + 1, 0.1::float4 + 0.2::float4, 0.1::float4 + 0.2::float8, 0.1::float8 + 0.2, 1::float4 / 3::float8
select 3.14::float8::numeric, 3.14::float4::numeric, 1e20::float8::numeric, 123456.789::float4::numeric, 1e-10::float8::numeric, (1::float8/3)::numeric
select 1.1::numeric::float8, 1.1::numeric::float4, 1e400::numeric::float8
select sin(1), cos(1), tan(1), asin(0.5), acos(0.5), atan(1), atan2(1, 2), cot(1)
select degrees(1), radians(180), pi()
select cbrt(27), ||/ 27
select sind(30), cosd(60), tand(45), sind(90), cosd(90)
select asin(2)
select sinh(1), cosh(1), tanh(0.5), asinh(1), acosh(2), atanh(0.5)
select 5 & 3, 5 | 3, 5 # 3, ~5, 1 << 3, 16 >> 2, -1 >> 1, 1 << 32, 1::bigint << 40, 1::smallint << 3, 5::bigint & 3
select 1 = 1.0, 1 < 1.5, 1::smallint = 1::bigint, 1.5 > 1::float8, 1 <> 2, 1 != 2, 2 >= 2, 2 <= 1
select +5, -5, - -5, -'5'::int, +1.5
select to_hex(255), to_hex(-1), to_hex(255::bigint), to_hex(-1::bigint)
select 1 + '1', '1' + 1, 1 + '1.5'
select 1.5 + '1', '2' * 1.5
select '1' + '1'
select 1 + 'a'
select 1 + true
select 1 || 2
select 'a' + 1
select int4(1.5), float8(1), text(1), int8('12'), bool(1)
select greatest(1, 2.5, 3), least(1, 2.5::float8), greatest(null, 1), greatest('a', 'b'), least(null, null)
select greatest(1, 'a')
select coalesce(null, 1, 2.5), coalesce(null, null), coalesce(null, 'a'), nullif(1, 1), nullif(1, 2), nullif('a', 'b'), nullif(1, 1.0)
select coalesce(1, 'a')
select coalesce(1, true)
select case when true then 1 else 2.5 end, case 1 when 1 then 'a' else 'b' end, case when null then 1 end, case 5 when 1 then 'x' when 5 then 'y' end
select case when 1 then 2 end
select case when true then 1 else 'a' end
select 1 in (1, 2), 3 in (1, 2), null in (1, 2), 3 in (1, null), 1 not in (2, 3), 1 not in (2, null), 'a' in ('a', 'b'), 1 in (1.0, 2)
select 1 in ('1', '2'), 1.5 in (1, 2)
select 1 in ('a', 'b')
select 5 between 1 and 10, 5 not between 1 and 4, 5 between symmetric 10 and 1, null between 1 and 2, 'b' between 'a' and 'c'
select 1 is distinct from null, null is distinct from null, 1 is not distinct from 1, 1 is distinct from 2
select null is null, 1 is null, 1 is not null, true is true, null is unknown, false is not true, null is not false
select true and null, false and null, true or null, false or null, not null::bool, not true
select 1 and true
select not 1
select true = false, true > false, true::int, 1::bool, 0::bool, 'yes'::bool, 'off'::bool, 't'::bool, true::text, false::varchar
select 'maybe'::bool
select 2::bool, (-1)::bool
select 1.5::bool
select true + 1
select 1::oid, (-1)::oid, '4294967295'::oid, 5::oid::int, 5::oid::bigint
select (-1)::bigint::oid
select 1::oid = 1, 1::oid < 2
select 65::"char", 'a'::"char", 'abc'::"char"::text, 'a'::"char"::int
select to_char(12, '999'), to_char(-12, '999'), to_char(12.5, '999.99'), to_char(0.5, '9.99'), to_char(0.5, '0.99'), to_char(1234567.891, '9,999,999.99'), to_char(12, 'FM999'), to_char(12, '00999'), to_char(-12, 'S999'), to_char(12, 'S999'), to_char(12, '999S'), to_char(-12, '999MI'), to_char(-12, '999PR'), to_char(12, '999PR'), to_char(1234, '99'), to_char(0, '99'), to_char(0, '9.99'), to_char(12, '999th'), to_char(1.5, 'FM9.999'), to_char(1.0, 'FM9.99'), to_char(-0.5, '9.9'), to_char(12, '"n="999'), to_char(485, '9 9 9'), to_char(148.5::float8, '999.9'), to_char(1485, '9G999'), to_char(148.5, 'FM999.000')
select to_number('12,454.8-', '99G999D9S'), to_number('1234.5', '9999.99'), to_number('-12', 'S99')
select (1+1) between 1 and 3, (1+1) between symmetric 3 and 1, (1+1) not between 3 and 4, (1+1) not between symmetric 4 and 3, (1+1) in (1,2,3), (1+1) not in (1,2), abs(-2) in (1.0, 2.0)
select x, x*2 between 3 and 5, x*2 in (2, 6), x+1 not in (2, null), x*2 between symmetric 5 and 3 from generate_series(1,3) x
select case when null between 12 and null then 1/0 else 2 end, case when 7 = any(null::int[]) then 1/0 else 3 end
select (1 in (1,2)) in (true, false), ('a' || 'b') in ('ab', 'c'), (1, 2) < (1, 3), (1, null) < (2, 1), (1, null) < (1, 2), (1, 2, 3) >= (1, 2, 3)
select 1e23::float8
select 36012026242414912::float8, 206053984011466.625::float8, 1e22::float8, 9007199254740993::float8, 8.5e15::float4, 33554436::float4, 16777218.5::float4
