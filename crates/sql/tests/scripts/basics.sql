select 1;
select 1 as one, 'text' as two, null as three, true, 1.50, 'é€𝄞';
values (1, 'a'), (2, 'b');
select 1; select 2; select 3;
select 1 \; select 2 \; select 3 as three;
;
select generate_series(1, 3) as g;
table nowhere;
select $1;
\echo done
