select 'a' || 'b', 'a' || 1, 1 || 'a', 'a' || null, 'a' || 1.5, true || 'x', 'a'::text || 'b'::varchar
select length('hello'), length('日本語'), octet_length('日本語'), bit_length('ab'), char_length('x'), length('ab  '::char(5)), octet_length('ab'::char(5))
select upper('abc'), lower('ABC'), initcap('hello wORLD foo_bar x1y'), reverse('abc'), repeat('ab', 3), repeat('a', -1), repeat('', 5)
select substring('hello' from 2), substring('hello' from 2 for 3), substring('hello' for 2), substr('hello', 0, 3), substr('hello', -1, 4), substring('hello', 10), substring('日本語' from 2 for 1)
select substring('hello' from 2 for -1)
select substring('foobar' from 'o(.)b'), substring('foobar' from 'o.b'), substring('foobar' from 'z')
select substring('foobar' similar '%#"o_b#"%' escape '#')
select position('l' in 'hello'), position('z' in 'hello'), position('' in 'a'), strpos('hello', 'lo')
select trim('  a  '), trim(both 'x' from 'xxaxx'), trim(leading 'x' from 'xxaxx'), trim(trailing from 'a  '), ltrim('  a'), rtrim('a  '), btrim('xyaxy', 'yx'), ltrim('zzzytest', 'xyz'), rtrim('testxxzx', 'xyz')
select lpad('hi', 5), lpad('hi', 5, 'xy'), lpad('hello', 2), rpad('hi', 5, 'xy'), rpad('hi', 1), lpad('hi', 5, ''), lpad('hi', -1)
select replace('abcabc', 'b', 'X'), replace('abc', '', 'x'), translate('12345', '143', 'ax'), overlay('Txxxxas' placing 'hom' from 2 for 4), overlay('abc' placing 'z' from 2)
select split_part('a,b,c', ',', 2), split_part('a,b,c', ',', -1), split_part('a,b,c', ',', 5), split_part('abc', '', 1), split_part('', ',', 1)
select split_part('a,b,c', ',', 0)
select left('hello', 2), left('hello', -2), left('hello', 10), right('hello', 2), right('hello', -2), left('hello', -10)
select ascii('a'), ascii('é'), ascii(''), chr(97), chr(233), chr(8364)
select chr(0)
select chr(-1)
select chr(1114112)
select md5('abc'), md5('abc'::bytea), sha256('abc'::bytea), sha224(''), sha512('a')
select concat('a', 1, null, true, 1.5), concat_ws(',', 'a', null, 'b', 2), concat_ws(null, 'a'), concat(null), concat_ws(',')
select concat()
select format('Hello %s', 'World'), format('%s %s', 1, null), format('%I', 'Foo Bar'), format('%I', 'select'), format('%L', 'it''s'), format('%L', null), format('%%'), format('%2$s %1$s', 'a', 'b'), format('|%10s|', 'foo'), format('|%-10s|', 'foo'), format('|%*s|', 5, 'x')
select format('%s')
select format('%x', 1)
select format('%I', null)
select format('%0$s', 1)
select format('%')
select format(null), format('%s', array[1,2])
select quote_ident('foo'), quote_ident('Foo'), quote_ident('a"b'), quote_ident('select'), quote_literal('a''b'), quote_literal('a\b'), quote_nullable(null), quote_nullable('x'), quote_literal(42), quote_ident('')
select starts_with('alphabet', 'alph'), 'alphabet' ^@ 'alp', starts_with('a', 'b')
select string_to_array('a,b,c', ','), string_to_array('a,b,,c', ',', ''), string_to_array('abc', null), string_to_array('', ','), string_to_array(null, ','), string_to_array('abc', ''), array_to_string(array[1,2,null,3], ','), array_to_string(array[1,null], ',', '*'), array_to_string(array['a','b'], null)
select encode('abc', 'hex'), encode('abc', 'base64'), encode('a\000\\b'::bytea, 'escape'), decode('616263', 'hex'), decode('YWJj', 'base64'), decode('a\\b', 'escape')
select decode('xyz', 'hex')
select decode('abc', 'hex')
select decode('YW', 'base64')
select decode('Y!Jj', 'base64')
select encode('abc', 'foo')
select encode(repeat('abcdefghij', 10)::bytea, 'base64')
select '\x616263'::bytea, 'abc'::bytea, 'a\\b'::bytea, '\x'::bytea, '\xAB cd'::bytea, 'a\001b'::bytea
select '\xabc'::bytea
select '\xzz'::bytea
select 'a\b'::bytea
select 'abc'::bytea || 'd'::bytea, length('abc'::bytea), substring('abcdef'::bytea from 2 for 3), position('b'::bytea in 'abc'::bytea), get_byte('abc'::bytea, 1), set_byte('abc'::bytea, 1, 65), get_bit('a'::bytea, 0), btrim('xaax'::bytea, 'x'::bytea)
select get_byte('abc'::bytea, 5)
select 'abc'::bytea < 'abd'::bytea, 'abc'::bytea = '\x616263'::bytea
select convert_to('é', 'UTF8'), convert_from('\xc3a9', 'UTF8')
select convert_from('\xff', 'UTF8')
select 'abc' like 'a%', 'abc' like '_b_', 'abc' like 'b', 'abc' not like 'x%', 'a%c' like 'a\%c', 'a%c' like 'a#%c' escape '#', 'ABC' ilike 'abc', 'abc' ~~ 'a%', 'abc' !~~ 'a%', 'ABC' ~~* 'a%', 'abc' like '%', '' like '%', '' like '', 'abc' like 'abc%%', 'aXbXc' like 'a%b%c'
select 'abc' like 'abc\'
select 'abc' like 'a#' escape '##'
select 'a\c' like 'a\c', 'a\c' like 'a\\c', 'a\c' like 'a\c' escape ''
select 'abc' similar to 'abc', 'abc' similar to 'a', 'abc' similar to '%(b|d)%', 'abc' similar to '(b|c)%', 'abc' not similar to 'a%', 'a.c' similar to 'a.c', 'abc' similar to 'a.c', '-abc-' similar to '%\mabc\M%', 'aab' similar to 'a{2}b', 'a_c' similar to 'a\_c'
select 'abc' ~ 'b', 'abc' ~ '^b', 'abc' ~* 'B', 'abc' !~ 'b', 'ABC' !~* 'b', 'abc' ~ '^a.*c$', 'foo123' ~ '\d+', 'a b' ~ '\s', 'foo' ~ '^[[:alpha:]]+$', 'abc' ~ '(a)(b)\2'
select 'abc' ~ '('
select 'abc' ~ '['
select 'abc' ~ '*'
select regexp_replace('foobarbaz', 'b..', 'X'), regexp_replace('foobarbaz', 'b..', 'X', 'g'), regexp_replace('foobarbaz', 'b(..)', 'X\1Y', 'g'), regexp_replace('Hello', 'L', 'x', 'gi'), regexp_replace('abc', 'b', '[\&]')
select regexp_match('foobarbequebaz', '(bar)(beque)'), regexp_match('foobarbequebaz', 'barbeque'), regexp_match('abc', 'd')
select regexp_matches('foobarbequebazilbarfbonk', '(b[^b]+)(b[^b]+)', 'g')
select regexp_split_to_array('hello world foo', '\s+'), regexp_split_to_array('abc', ''), regexp_split_to_table('a,b,c', ',')
select regexp_count('ABCABCAXYaxy', 'A.'), regexp_count('ABCABCAXYaxy', 'A.', 1, 'i'), regexp_like('Steven', '^Ste(v|ph)en$'), regexp_like('abc', 'B', 'i')
select regexp_match('abc', 'b', 'g')
select regexp_replace('abc', 'b', 'x', 'q'), regexp_replace('a.c', '.', 'x', 'q')
select regexp_matches('abc', 'b', 'z')
select 'abc'::char(5), 'abc'::char(2), 'abc'::varchar(2), 'abc  '::char(5) = 'abc', 'abc  '::varchar = 'abc', 'a'::char(3) || 'b', 'abc'::char(5)::text || 'x', 'abc'::char
select 'abc'::char(0)
select 'abc'::varchar(0)
select 'a'::name, 'abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz'::name, 'a'::name = 'a', 'a'::name || 'b'
select 'a' < 'b', 'a' < 'B', 'abc' > 'ab', 'a' = 'a ', 'é' > 'z', 'Z' < 'a'
select max(x), min(x) from (values ('b'), ('a'), ('C')) t(x)
select E'a\tb\n', U&'\0441', $$dollar$$, 'it''s'
select pg_typeof('a'), pg_typeof('a'::text), pg_typeof(1), pg_typeof(1.5), pg_typeof(null), pg_typeof(array[1]), pg_typeof('a'||'b'), pg_typeof(now()), pg_typeof(1::bigint+1), pg_typeof('x'::char(3))
select format_type(23, null), format_type(1043, 14), format_type(1700, 655366), format_type(1184, 3), format_type(0, null), format_type(99999, null)
select 'int4'::regtype, 'integer'::regtype, 'text[]'::regtype, 23::regtype, 'timestamp with time zone'::regtype, '_int4'::regtype, 23::regtype::text
select 'nosuch'::regtype
select to_regtype('int4'), to_regtype('nosuch')
select foo('a')
select upper(1)
select length(1)
select substring(1, 2)
select pg_catalog.upper('a'), pg_catalog.length('abc')
select nosuch.upper('a')
select upper('a', 'b')
select 'a'::nosuch
select cast('5' as int), cast(5 as text), '5'::text::int, 5::text || 'a', cast(1.5 as varchar(2))
select 'abc' collate "C", 'a' < 'b' collate "C"
select 'a' collate "nosuch"
select 1 collate "C"
select unistr('\0064at\+0000E5')
select num_nulls(1, null, 2), num_nonnulls(1, null, 2), num_nulls(variadic array[1,null])
select concat(variadic array['a','b']), concat_ws(',', variadic array[1,2,3]), format('%s %s', variadic array['a','b'])
