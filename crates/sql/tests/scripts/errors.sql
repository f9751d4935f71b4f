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
