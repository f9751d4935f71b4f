select '2024-02-29'::date, 'Feb 29 2024'::date, '29 February 2024'::date, '2/28/2024'::date, '20240229'::date, '240229'::date, '2024.060'::date, '99-01-08'::date, 'January 8, 99 BC'::date, 'J2451187'::date, '1999-Jan-08'::date, '08-Jan-1999'::date, 'Jan-08-1999'::date
select '2023-02-29'::date
select '2024-13-01'::date
select '2024-01-32'::date
select '13/13/2024'::date
select 'foo'::date
select ''::date
select '0000-01-01'::date
select '5874898-01-01'::date
select 'infinity'::date, '-infinity'::date, 'epoch'::date, '4714-11-24 BC'::date, '5874897-12-31'::date
select '04:05:06'::time, '04:05'::time, '040506'::time, '04:05 AM'::time, '04:05 PM'::time, '04:05:06.789'::time, '24:00:00'::time, '23:59:60'::time, 'allballs'::time, '2024-01-01 04:05'::time, '04:05:06.1234567'::time, '12:00 am'::time
select '25:00'::time
select '24:00:01'::time
select '04:60'::time
select '13:05 PM'::time
select '04:05:06-08'::timetz, '04:05:06 PST'::timetz, '04:05+05:30'::timetz, '2003-04-12 04:05:06 America/New_York'::timetz, '04:05:06'::timetz
select '2024-01-02 03:04:05'::timestamp, '2024-01-02T03:04:05'::timestamp, '2024-01-02 03:04:05.123456'::timestamp, '20240102 030405'::timestamp, 'Tue Jan 02 03:04:05 2024'::timestamp, '2024-01-02'::timestamp, '2024-01-02 03:04:05+02'::timestamp, 'Jan 2 2024 3:04 PM'::timestamp, '2024-01-02 03:04:05 BC'::timestamp, '20240102T030405'::timestamp
select '2024-01-02 25:00:00'::timestamp
select '2024-01-02 03:04:05 foo'::timestamp
select '2024-01-02 03:04:05 Foo/Bar'::timestamptz
select '294277-01-01'::timestamp
select '294276-12-31 23:59:59.999999'::timestamp, '4714-11-24 00:00 BC'::timestamp
select '2024-01-02 03:04:05'::timestamptz, '2024-01-02 03:04:05+02'::timestamptz, '2024-07-02 03:04:05 America/New_York'::timestamptz, '2024-01-02 03:04:05 PST'::timestamptz, '2024-01-02 03:04:05Z'::timestamptz, '2024-01-02 03:04:05-03:30'::timestamptz, '2024-01-02 03:04:05+0530'::timestamptz, '2024-03-10 02:30 America/New_York'::timestamptz, '2024-11-03 01:30 America/New_York'::timestamptz
select '2024-01-02 03:04:05+20'::timestamptz
select '1 day'::interval, '1 year 2 months 3 days 04:05:06'::interval, '1-2'::interval, '1 12:59:10'::interval, 'P1Y2M3DT4H5M6S'::interval, 'P0001-02-03T04:05:06'::interval, '1.5 days'::interval, '1.5 months'::interval, '1.5 years'::interval, '-1 day'::interval, '1 day ago'::interval, '@ 1 minute'::interval, '90 minutes'::interval, '1 week'::interval, '1 decade'::interval, '0'::interval, '-1 year +3 days -04:05:06'::interval, '100 ms'::interval, '1 us'::interval, '5'::interval, '1.5'::interval, '25:00:00'::interval, '1 mon -1 hour'::interval
select 'foo'::interval
select '1 foo'::interval
select ''::interval
select '1 day 1 day'::interval
select '99999999999 years'::interval
select interval '1' year, interval '1-2' year to month, interval '1 2:03' day to minute, interval '1:02' minute to second, interval '10' second(2), interval(3) '1.23456 sec', interval '1 day 2:03:04' day, interval '5' hour, interval '1 year 2 mons 3 days' month
select date '2024-01-31' + 1, date '2024-01-31' - 1, date '2024-03-01' - date '2024-02-01', date '2024-01-31' + interval '1 month', date '2024-01-31' + time '04:05', 1 + date '2024-01-31', date '2024-03-31' - interval '1 month', date '2024-01-01' + timetz '04:05+02'
select timestamp '2024-01-31 10:00' + interval '1 month', timestamp '2024-01-31' - timestamp '2023-12-25 10:30', timestamp '2024-02-29' - interval '1 year', interval '1 day' + timestamp '2024-01-01', timestamptz '2024-01-01 00:00+00' - timestamptz '2023-01-01 00:00+00'
select interval '1 day' + interval '2 hours', interval '1 day' - interval '2 hours', interval '1 day' * 2.5, interval '1 month' * 1.5, interval '1 year' / 3, 2 * interval '1 hour', -interval '1 day 2 hours', interval '1 month 1 day' / 2, interval '10 days' / 3.3, interval '1 mon 2 days 3 hours' * 0.1
select interval '1 day' / 0
select time '04:05' + interval '20 hours', time '04:05' - interval '5 hours', time '04:05' - time '02:00', timetz '04:05+02' + interval '1 hour'
select interval '1 day' = interval '24 hours', interval '1 month' = interval '30 days', interval '1 month' > interval '29 days', date '2024-01-01' = timestamp '2024-01-01', date '2024-01-01' < timestamptz '2024-01-01 01:00+00', time '01:00' < time '02:00', timetz '04:05+02' < timetz '04:05+01', timestamp '2024-01-01' = timestamptz '2024-01-01 00:00+00'
select extract(year from timestamp '2024-03-05 06:07:08.123456'), extract(month from timestamp '2024-03-05'), extract(day from date '2024-03-05'), extract(hour from timestamp '2024-03-05 06:07:08'), extract(minute from time '06:07:08'), extract(second from timestamp '2024-03-05 06:07:08.123456'), extract(milliseconds from time '06:07:08.5'), extract(microseconds from interval '1.5 sec')
select extract(dow from date '2024-03-05'), extract(doy from date '2024-03-05'), extract(isodow from date '2024-03-03'), extract(week from date '2021-01-03'), extract(isoyear from date '2021-01-03'), extract(quarter from date '2024-05-01'), extract(decade from date '2024-05-01'), extract(century from date '2000-12-31'), extract(millennium from date '2001-01-01'), extract(century from date '0001-01-01 BC'), extract(epoch from timestamp '2024-01-01 00:00:00.5'), extract(epoch from interval '1 year 2 mons 3 days 04:05:06.7'), extract(julian from date '2024-01-01'), extract(julian from timestamp '2024-01-01 12:34:56')
select extract(timezone from timestamptz '2024-01-01'), extract(timezone_hour from timetz '01:00+05:30'), extract(timezone_minute from timetz '01:00+05:30'), extract(day from interval '40 days 5 hours'), extract(month from interval '14 months'), extract(year from interval '-14 months')
select extract(foo from date '2024-01-01')
select extract(hour from date '2024-01-01')
select extract(dow from interval '1 day')
select extract(timezone from timestamp '2024-01-01')
select date_part('year', timestamp '2024-03-05'), date_part('epoch', timestamptz '2024-03-05 00:00+00'), date_part('second', interval '1.5 sec'), date_part('day', date '2024-03-05')
select extract(year from 'infinity'::timestamp), extract(day from 'infinity'::timestamp), extract(epoch from '-infinity'::date)
select date_trunc('hour', timestamp '2024-03-05 06:07:08'), date_trunc('month', timestamptz '2024-03-05 06:07:08+00'), date_trunc('week', timestamp '2024-03-05'), date_trunc('quarter', date '2024-05-06'), date_trunc('decade', timestamp '2024-03-05'), date_trunc('century', timestamp '2024-03-05'), date_trunc('millennium', timestamp '2024-03-05'), date_trunc('day', interval '1 day 2 hours'), date_trunc('month', interval '1 year 2 mons 3 days'), date_trunc('day', timestamptz '2024-03-05 06:07:08+00', 'America/New_York'), date_trunc('milliseconds', timestamp '2024-03-05 06:07:08.123456')
select date_trunc('foo', timestamp '2024-03-05')
select date_trunc('week', interval '1 day')
select date_trunc('dow', timestamp '2024-03-05')
select age(timestamp '2024-03-05', timestamp '2000-01-31'), age(timestamp '2001-04-10', timestamp '1957-06-13'), age(timestamp '2024-01-01', timestamp '2024-03-31 12:00'), age(date '2024-03-01', date '2024-02-29')
select justify_days(interval '35 days'), justify_hours(interval '27 hours'), justify_interval(interval '1 mon -1 hour'), justify_interval(interval '60 days 50 hours')
select make_date(2024, 2, 29), make_time(8, 15, 23.5), make_timestamp(2024, 7, 15, 8, 15, 23.5), make_timestamptz(2024, 7, 15, 8, 15, 23.5), make_timestamptz(2024, 7, 15, 8, 15, 23.5, 'America/New_York'), make_interval(1, 2, 3, 4, 5, 6, 7.5), make_interval(), make_date(-44, 3, 15)
select make_date(2023, 2, 29)
select make_time(25, 0, 0)
select timestamp '2024-01-01 12:00' at time zone 'America/New_York', timestamptz '2024-01-01 12:00+00' at time zone 'America/New_York', timestamptz '2024-07-01 12:00+00' at time zone 'Europe/Berlin', timestamp '2024-01-01 12:00' at time zone interval '-5 hours', timestamptz '2024-01-01 12:00+00' at time zone 'PST', timestamptz '2024-01-01 12:00+00' at time zone 'EST5EDT', timetz '12:00+00' at time zone interval '2 hours'
select timestamp '2024-01-01 12:00' at time zone 'Foo'
select timestamp '2024-01-01 12:00' at time zone interval '1 month'
select timezone('UTC', timestamp '2024-01-01 12:00'), timezone('Asia/Kolkata', timestamptz '2024-01-01 12:00+00')
select to_timestamp(0), to_timestamp(1704067200.5), to_timestamp('infinity'::float8)
select to_timestamp('NaN'::float8)
select timestamp '2024-01-02 03:04:05.678'::date, timestamp '2024-01-02 03:04:05.678'::time, timestamp '2024-01-02 03:04:05.678'::timestamp(1), timestamp(0) '2024-01-02 03:04:05.5', '04:05:06.789'::time(1), date '2024-01-02'::timestamp, date '2024-01-02'::timestamptz, timestamptz '2024-01-02 03:04:05+00'::timestamp, timestamptz '2024-01-02 03:04:05+00'::date, time '04:05'::interval, interval '25:30'::time, timestamptz '2024-01-02 03:04:05+00'::timetz
select '2024-01-01'::date::text, '2024-01-01 10:00'::timestamp::text || 'x', interval '1 day'::text, '2024-01-01'::text::date
select 1::date
select '2024-01-01'::date::int
select isfinite(date '2024-01-01'), isfinite('infinity'::timestamp), isfinite(interval '1 day')
select date_bin('15 minutes', timestamp '2020-02-11 15:44:17', timestamp '2001-01-01'), date_bin('2 hours', timestamptz '2020-02-11 15:44:17+00', timestamptz '2001-01-01 00:02:30+00')
select date_bin('1 month', timestamp '2020-02-11', timestamp '2001-01-01')
select 'infinity'::timestamp - timestamp '2024-01-01'
select 'infinity'::timestamp + interval '1 day', 'infinity'::date + 1, 'infinity'::timestamp > timestamp '2024-01-01'
select timestamp '294276-12-31' + interval '1 year'
select date '5874897-12-31' + 1
select (timestamp '2024-01-01', timestamp '2024-02-01') overlaps (timestamp '2024-01-15', timestamp '2024-03-01')
select '2024-01-01'::timestamp(7)
select 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, '{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}'::uuid, 'A0EEBC999C0B4EF8BB6D6BB9BD380A11'::uuid, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid::text
select 'a0eebc99'::uuid
select 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid < 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid
select '12:00'::time < '13:00', date '2024-01-01' + '1 day', '2024-01-02' - date '2024-01-01', date '2024-01-02' > '2024-01-01'
select date '2024-01-01' + '1'
select now() - now(), now() = current_timestamp, now() = transaction_timestamp(), current_date = now()::date, localtimestamp = now()::timestamp, statement_timestamp() >= now()
select to_char(timestamp '2024-03-05 16:07:08.123456', 'YYYY-MM-DD HH24:MI:SS.US'), to_char(timestamp '2024-03-05 16:07:08.123456', 'Day, DD Month YYYY HH12:MI:SS AM'), to_char(timestamp '2024-03-05', 'FMDay, FMDD FMMonth'), to_char(timestamp '2024-03-05', 'DDth Mon YY'), to_char(timestamp '2024-03-05', 'D ID DDD WW IW Q CC J'), to_char(timestamp '2024-03-05', 'IYYY-IW-ID'), to_char(timestamptz '2024-03-05 16:07:08+00', 'TZ TZH:TZM OF'), to_char(timestamp '2024-03-05', '"year" YYYY'), to_char(timestamp '2024-03-05 16:07:08', 'MON mon Mon MONTH|RM|W|MS|SSSS|FF3|am|p.m.'), to_char(timestamp '0044-03-15 BC', 'YYYY BC'), to_char(date '2024-03-05', 'YYYY')
select to_char(interval '1 day 02:03:04', 'DD HH24:MI:SS'), to_char(interval '15 months', 'YYYY MM')
select to_date('2024-03-05', 'YYYY-MM-DD'), to_date('05 Mar 2024', 'DD Mon YYYY'), to_date('20240305', 'YYYYMMDD'), to_timestamp('2024-03-05 16:07:08', 'YYYY-MM-DD HH24:MI:SS'), to_timestamp('04:05 PM', 'HH12:MI AM')::time, to_date('2024 060', 'YYYY DDD'), to_date('24', 'YY')
select to_date('2024-13-05', 'YYYY-MM-DD')
select to_date('foo', 'YYYY')
select to_date('05 Foo 2024', 'DD Mon YYYY')
