selec 1;
select 'é', frm x y;
select (1;
select 'unterminated
';
select 1 +;
select 1/0;
select nosuchcolumn;
select nosuchfunction(1);
select 1 as "ä", nosuchcolumn as "ö";
select
  1,
  nosuchcolumn,
  2;
select 'x'::int;
select E'\uzzzz';
select 1 limit 1, 2;
\set VERBOSITY verbose
\set SHOW_CONTEXT always
\set VERBOSITY sqlstate
select 1/0;
\set VERBOSITY terse
select nosuchcolumn;
\set VERBOSITY default
create assertion a check (true);
\set ON_ERROR_STOP 1
select 1/0;
select 'never printed';
copy (select 1) to stdout (format binary, delimiter ',');
copy (select 1) to stdout (format binary, null 'x');
copy (select 1) to stdout (format binary, header);
copy (select 1) to stdout (format binary, quote 'x');
select 'x' || (1 / 0) || '{1}'::text::int[] from (select 1) t where 'x'::text::int = 1;
select case when false then 'a' || 1 / 0 else 'b' end, case when false then ('{x' || '}')::text::int[] end;
select ('a' || 1)::int, 1 / 0;
select 1 / 0, ('a' || 1)::int;
select ('{a' || '}')::int[], 1 / 0;
select 1 / 0 * length(null::interval::text), (2 / 0)::text || null::date::text;
