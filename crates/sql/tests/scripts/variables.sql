\set a 7
select :a as a, :'a' as quoted, :"a" from (values (1)) as v("7");
select 41 + 1 as answer \gset
\echo :answer
select 1 as x, 'two' as y \gx
\if :{?answer}
select 'there' as answer;
\else
select 'not there' as answer;
\endif
select 1/0;
\echo :ERROR :SQLSTATE :ROW_COUNT :LAST_ERROR_MESSAGE
\pset null 'NULL'
select null;
\pset format csv
select 1 as a, 'b,c' as b;
\encoding
\x
select 1 as a;
