-- A shop: customers, products, orders and their lines, as an application would use them.
create table customer (id int primary key, name text not null, city varchar(20), joined date not null default '2024-01-01', credit numeric(10, 2) check (credit >= 0));
create table product (sku char(5) primary key, title text not null unique, price numeric(8, 2) not null check (price > 0), tags text[] default '{}');
create table orders (id serial primary key, customer_id int not null references customer (id) on delete restrict, placed timestamp not null, status text default 'new' check (status in ('new', 'paid', 'sent')));
create table line (order_id int references orders (id) on delete cascade, sku char(5) references product (sku) on update cascade, quantity int not null check (quantity > 0), primary key (order_id, sku));
create index orders_customer on orders (customer_id, placed desc);
insert into customer values (1, 'Ada', 'London', '2023-05-01', 100), (2, 'Ben', 'Paris', '2023-06-15', 0), (3, 'Cleo', null, default, null);
insert into customer (id, name) values (4, 'Dora') returning *;
insert into product values ('A0001', 'Anvil', 49.90, '{heavy,iron}'), ('B0002', 'Brush', 3.5, '{}'), ('C0003', 'Candle', 1.25, null);
insert into product (sku, title, price) values ('D0004', 'Drum', 120) returning sku, tags;
insert into orders (customer_id, placed) values (1, '2024-02-01 10:00'), (1, '2024-02-03 12:30'), (2, '2024-02-03 09:00') returning id, status;
insert into line values (1, 'A0001', 1), (1, 'B0002', 4), (2, 'C0003', 10), (3, 'B0002', 2), (3, 'D0004', 1);
-- What is refused.
insert into customer values (1, 'Ada again');
insert into customer values (5, null);
insert into customer values (5, 'Eve', 'a city with a very long name');
insert into customer values (5, 'Eve', 'Rome', 'not a date');
insert into customer values (5, 'Eve', 'Rome', '2024-02-30');
insert into customer values (5, 'Eve', 'Rome', '2024-02-29', -1);
insert into product values ('A0002', 'Anvil', 10);
insert into product values ('A0002', 'Axe', 0);
insert into product values ('A00023', 'Axe', 5);
insert into orders (customer_id, placed) values (99, now());
insert into orders (customer_id, placed, status) values (1, '2024-02-01', 'lost');
insert into line values (1, 'A0001', 2);
insert into line values (9, 'Z0009', 2), (1, 'Z0009', 2);
insert into line values (1, 'C0003', 0);
delete from customer where id = 1;
delete from product where sku = 'A0001';
update line set quantity = quantity - 4 where sku = 'B0002';
-- What is asked.
select c.name, count(o.id) as orders from customer c left join orders o on o.customer_id = c.id group by c.name order by c.name;
select o.id, sum(l.quantity * p.price) as total from orders o join line l on l.order_id = o.id join product p on p.sku = l.sku group by o.id order by total desc;
select c.city, sum(l.quantity * p.price) from customer c join orders o on o.customer_id = c.id join line l on l.order_id = o.id join product p on p.sku = l.sku group by c.city having sum(l.quantity * p.price) > 100 order by 1;
select name from customer where city is null order by name;
select name, coalesce(city, 'unknown') as city from customer order by city, name;
select name, credit from customer order by credit desc nulls last, name;
select name, credit from customer order by credit nulls first, name limit 2;
select distinct status from orders;
select distinct on (customer_id) customer_id, placed from orders order by customer_id, placed desc;
select name from customer where id in (select customer_id from orders) order by name;
select name from customer where id not in (select customer_id from orders) order by name;
select name from customer c where not exists (select from orders o where o.customer_id = c.id) order by name;
select name, (select max(placed) from orders o where o.customer_id = c.id) as last from customer c order by id;
select title from product where price > (select avg(price) from product) order by title;
select title from product where price >= all (select price from product);
select sku, 'heavy' = any (tags) as heavy from product order by sku;
select sku from product where tags @> '{iron}';
select unnest(tags) as tag from product order by tag;
select c.name, l.latest from customer c left join lateral (select o.placed as latest from orders o where o.customer_id = c.id order by o.placed desc limit 1) l on true order by c.name;
select date_trunc('day', placed) as day, count(*) from orders group by 1 order by 1;
select extract(month from placed) as month, count(*) filter (where status = 'new') as fresh from orders group by 1;
select to_char(placed, 'DD Mon YYYY HH24:MI') from orders order by placed;
select placed::date - date '2024-01-01' as days from orders order by 1;
select string_agg(title, ', ' order by title desc) from product;
select array_agg(sku order by price) from product;
select min(price), max(price), round(avg(price), 2), count(distinct length(title)) from product;
with spent as (select o.customer_id as id, sum(l.quantity * p.price) as total from orders o join line l on l.order_id = o.id join product p on p.sku = l.sku group by 1) select c.name, s.total from customer c join spent s on s.id = c.id order by s.total;
with unread as (select nothing from customer) select 1;
with unread as (select name from customer), bad as (select * from unread join missing on true) select 1;
select name from customer union select title from product order by name;
select city from customer intersect select 'Paris';
select id from customer except select customer_id from orders order by id;
select customer_id from orders union all select id from customer order by 1 offset 2 limit 3;
select case when price < 2 then 'cheap' when price < 100 then 'fair' else 'dear' end as band, count(*) from product group by band order by band;
select name from customer where name like '_e%' or name ilike 'AD%' order by name;
select name from customer where joined between '2023-06-01' and '2023-12-31';
select upper(left(name, 2)) || lpad(id::text, 3, '0') as code from customer order by id;
select count(*) from line where (order_id, sku) in ((1, 'A0001'), (2, 'C0003'), (2, 'A0001'));
select sku, price from product order by price * 1.2 desc fetch first 2 rows only;
-- What is changed.
update orders set status = 'paid' where id = 1 returning id, status;
update orders o set status = 'sent' from customer c where c.id = o.customer_id and c.city = 'Paris' returning o.id, o.status;
update customer set credit = coalesce(credit, 0) + 10 where id > 2 returning name, credit;
update product set price = round(price * 1.1, 2) where sku in (select sku from line where quantity > 3) returning sku, price;
update product set sku = 'B9999' where sku = 'B0002';
select sku, quantity from line where sku = 'B9999' order by order_id;
update customer set id = 10 where id = 1;
insert into customer values (2, 'Benjamin', 'Nice') on conflict (id) do update set name = excluded.name, city = excluded.city returning *;
insert into customer values (2, 'Nobody') on conflict do nothing returning id;
insert into customer values (7, 'Gus'), (7, 'Guy') on conflict (id) do update set name = excluded.name;
insert into product values ('E0005', 'Drum', 1) on conflict (title) do update set price = product.price + excluded.price returning sku, price;
insert into product values ('D0004', 'Drums', 1) on conflict (title) do nothing;
insert into line select 2, sku, 1 from product where price < 5 order by sku on conflict (order_id, sku) do update set quantity = line.quantity + 1 returning sku, quantity;
delete from line l using product p where p.sku = l.sku and p.price > 100 returning l.order_id, l.sku;
delete from orders where id = 3 returning status;
select order_id, sku, quantity from line order by 1, 2;
-- Together or not at all.
begin;
insert into orders (customer_id, placed) values (4, '2024-03-01') returning id > 3 as is_later;
savepoint lines;
insert into line select max(id), 'A0001', 1 from orders;
insert into line select max(id), 'X0000', 1 from orders;
select count(*) from line;
rollback to savepoint lines;
insert into line select max(id), 'B9999', 2 from orders;
release savepoint lines;
update customer set credit = credit - 5 where id = 4 returning credit;
commit;
select c.name, l.sku, l.quantity from customer c join orders o on o.customer_id = c.id join line l on l.order_id = o.id where c.id = 4 order by l.sku;
begin;
delete from orders;
select count(*) from line;
rollback;
select count(*) from line;
begin;
update customer set credit = credit - 1000 where id = 3;
select 1;
commit;
select credit from customer where id = 3;
-- In and out.
copy product (sku, title, price) from stdin;
F0006	Flute	75.00
G0007	Gong	210.5
\.
copy product (sku, title, price) from stdin;
H0008	Harp	-1
\.
copy line from stdin with (format csv);
1,F0006,2
2,G0007,1
\.
copy line from stdin;
1	Q0000	1
\.
copy (select sku, title, price from product order by sku) to stdout;
copy (select name, city, credit from customer order by id) to stdout with (format csv, header);
copy (select id, city from customer order by id) to stdout with (null '-');
-- Several keys that are not there: the first row's is told.
insert into orders (customer_id, placed) values (77, '2024-01-01'), (55, '2024-01-01');
insert into line values (1, 'Y0001', 1), (1, 'X0001', 1);
create table visit (id int primary key, customer_id int references customer (id) deferrable initially deferred);
insert into visit values (1, 66), (2, 55);
begin;
insert into visit values (1, 44);
insert into visit values (2, 33);
commit;
-- What a statement that writes fails with comes before its columns.
insert into visit values (1, 1), (1, 2) returning *;
alter table visit drop constraint if exists visit_none;
alter table visit add column if not exists id int;
-- Statements that mean more than is there, or nothing.
select '{}' @> '{1}';
(select distinct '{}') intersect select array[1];
insert into visit select distinct '5', null;
select name, credit from customer group by name;
select name from customer where count(*) > 1;
select sum(count(*)) from customer;
select min(name order by max(name)) from customer;
select name from customer order by 3;
select o.name from customer c;
select (id, name) < (name, id) from customer;
update orders set status = 'new' from customer where customer.id = 0 returning orders.id;
select name from customer, customer;
select id from customer join orders on true;
update customer set name = 'x' from orders where id = 1;
drop table customer;
drop table line, orders, visit, product, customer;
