select array[1,2,3], array['a','b'], array[1,2.5], array[1,null], array[]::int[], '{1,2,3}'::int[], '{}'::text[], '{"a b",c,NULL,"NULL",""}'::text[], array[[1,2],[3,4]], '{{1,2},{3,4}}'::int[], '[2:4]={1,2,3}'::int[]
select array[]
select array[1,'a']
select array[1,true]
select array[array[1,2],array[3]]
select '{1,2'::int[]
select '1,2'::int[]
select '{1,a}'::int[]
select '{{1,2},{3}}'::int[]
select '{1,,2}'::int[]
select '{1}x'::int[]
select '[1:2]={1}'::int[]
select '{a"b}'::text[]
select (array[1,2,3])[2], (array[1,2,3])[5], (array[1,2,3])[null], (array[[1,2],[3,4]])[2][1], (array[[1,2],[3,4]])[1], (array[1,2,3])[1:2], (array[1,2,3])[2:], (array[1,2,3])[:2], ('[2:4]={1,2,3}'::int[])[2], (array[[1,2],[3,4]])[1:2][2:2], (array[[1,2],[3,4]])[1:1]
select (array[1,2])['a']
select (1)[1]
select (array[1,2])[1.5]
select array_length(array[1,2,3], 1), array_length(array[1,2], 2), array_upper('[2:4]={1,2,3}'::int[], 1), array_lower('[2:4]={1,2,3}'::int[], 1), array_ndims(array[[1],[2]]), array_dims(array[[1,2],[3,4]]), cardinality(array[[1,2],[3,4]]), cardinality('{}'::int[]), array_length('{}'::int[], 1), array_ndims('{}'::int[])
select array_append(array[1,2], 3), array_prepend(0, array[1,2]), array_cat(array[1,2], array[3,4]), array[1,2] || 3, 0 || array[1,2], array[1,2] || array[3,4], array[[1,2]] || array[3,4], array[1,2] || null::int[], array_append(null::int[], 1), array[1] || '{2,3}', array_append(array[1], 2.5), array['a'] || 'b'::text
select array[1] || 'a'
select array_cat(array[[1,2]], array[[1,2,3]])
select array_append(array[1], 'a')
select array_position(array['a','b','c'], 'b'), array_position(array[1,2,1], 1, 2), array_positions(array[1,2,1], 1), array_position(array[1,null], null), array_remove(array[1,2,1], 1), array_remove(array[1,null], null), array_replace(array[1,2,1], 1, 9), array_position(array[1], 5)
select array[1,2] = array[1,2], array[1,2] < array[1,3], array[1,2] @> array[1], array[1] <@ array[1,2], array[1,2] && array[2,3], array[1,2] <> array[2,1], array[1,null] = array[1,null], array[1,2] > array[1]
select array[1,2] = array['a']
select 1 = any(array[1,2]), 3 = any(array[1,2]), 3 = any(array[1,null]), 1 = all(array[1,1]), 1 < all(array[2,3]), 1 = any('{1,2}'), 'a' = any(array['a','b']), 1 = any(null::int[]), 1 <> all(array[2,3]), 'a' like any(array['a%','b%'])
select 1 = any(1)
select 1 = any(array['a'])
select 1 + any(array[1])
select array[1,2]::text[], array['1','2']::int[], array[1.5,2.5]::int[], array[1,2]::text, '{1,2}'::text::int[], array[1,2]::bigint[], array['abc','de']::varchar(2)[]
select array['a']::int[]
select array_fill(7, array[3]), array_fill(0, array[2,2]), array_fill(1, array[2], array[5]), trim_array(array[1,2,3], 1)
select trim_array(array[1,2,3], 4)
select unnest(array[1,2,3])
select unnest(array[1,2]), unnest(array['a','b','c'])
select * from unnest(array['a','b']) with ordinality
select * from unnest(array['a','b']) with ordinality as t(x, n)
select array_agg(x) from generate_series(1,5) x
select array_agg(x order by x desc) from generate_series(1,5) x
select array_agg(distinct x % 3 order by x % 3) from generate_series(1,10) x
select array_agg(array[x, x*2]) from generate_series(1,3) x
select array_to_string(array[[1,2],[3,4]], ','), array_to_string('{}'::int[], ',')
select string_to_array('1,2,3', ',')::int[]
select generate_subscripts(array[5,6,7], 1), generate_subscripts(array[5,6,7], 1, true)
select row(1,'a',null), row(1,2) = row(1,2), row(1,2) < row(1,3), (1,2) = (1,null), row(1, 'a b', 'c,d', '', null, 'q"x')
select (1,2) < (1,3), (1,2) <> (1,2), (1,'a') = (1,'a'), (2,1) >= (1,5)
select row(1,2) = row(1,2,3)
select row(1,null) is null, row(null,null) is null, row(1,2) is not null, row(1,null) is not null
select array[row(1,2)]
select array_upper(1, 1)
select cardinality('{1,2}')
select cardinality(null)
select array_length('{1}', 1)
select array_append(null, null)
select array_append(null, 1), array_append('{1}', 2)
select array_cat('{1}', '{2}')
select array_position(null, 1)
select array_to_string('{1,2}', ',')
select row('a', null, 1), row(row(1, 2), 'x')
