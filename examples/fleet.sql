-- Ten questions to a fleet of boots: a folder of traces, one file a boot.
--   for t in boots/*.pftrace.gz; do rsptrace convert "$t" -o "${t%.pftrace.gz}.parquet"; done
--   duckdb < fleet.sql
-- `filename` says which boot a row is of; in Spark it is input_file_name(), in Trino "$path". Columns: docs/formats.md.

-- Which builds are there, and how many boots of each?
select decode(value) as build, count(*) as boots
from parquet_kv_metadata('boots/*.parquet') where decode(key) = 'rsptrace.build_id' group by all order by boots desc;

-- How long does a boot take until `init_done` is entered?
select median(t) / 1e6 as p50_ms, quantile_disc(t, 0.95) / 1e6 as p95_ms, max(t) / 1e6 as max_ms
from (select min(time_ns) as t from read_parquet('boots/*.parquet', filename = true) where type = 'call' and name like '%init_done' group by filename);

-- Which boots are slowest, and by how much above the median?
with boots as (select filename, max(time_ns + coalesce(duration_ns, 0)) - min(time_ns) as t from read_parquet('boots/*.parquet', filename = true) group by all)
select filename, t / 1e6 as ms, t / (select median(t) from boots) as times_median from boots order by t desc limit 5;

-- Where does the time go, over all boots?
select name, count(*) as calls, sum(duration_ns) / 1e6 as total_ms from 'boots/*.parquet' where type = 'call' group by all order by total_ms desc limit 10;

-- Which functions vary most from boot to boot?
with each as (select filename, name, sum(duration_ns) as t from read_parquet('boots/*.parquet', filename = true) where type = 'call' group by all)
select name, avg(t) / 1e6 as avg_ms, stddev_pop(t) / avg(t) as variation from each group by all having count(*) > 10 order by variation desc limit 10;

-- Which polls block the executor?
select name, count(*) as polls, quantile_disc(duration_ns, 0.99) / 1e3 as p99_us, max(duration_ns) / 1e3 as max_us
from 'boots/*.parquet' where type = 'poll' group by all order by max_us desc limit 10;

-- Where do tasks wait, by what they awaited when a poll was pending?
select detail as awaits, count(*) as times, count(distinct filename) as boots
from read_parquet('boots/*.parquet', filename = true) where type = 'poll' and result = 'pending' group by all order by times desc limit 10;

-- Which boots panicked in a poll, or lost calls?
select filename, count(*) filter (where result = 'panicked') as panics, count(*) filter (where result = 'lost') as lost
from read_parquet('boots/*.parquet', filename = true) group by all having panics + lost > 0 order by panics desc, lost desc;

-- Which function is called in some boots alone?
with all_boots as (select count(distinct filename) as n from read_parquet('boots/*.parquet', filename = true))
select name, count(distinct filename) as boots from read_parquet('boots/*.parquet', filename = true)
where type = 'call' group by all having boots < (select n from all_boots) order by boots limit 10;

-- What became slower from one half of the boots to the other, by name of file?
with each as (select filename, name, sum(duration_ns) as t from read_parquet('boots/*.parquet', filename = true) where type = 'call' group by all),
placed as (select *, dense_rank() over (order by filename) as place, count(distinct filename) over () as n from each),
halves as (select name, avg(t) filter (where 2 * place <= n) as before, avg(t) filter (where 2 * place > n) as after from placed group by name)
select name, before / 1e6 as before_ms, after / 1e6 as after_ms, 100 * (after - before) / before as percent from halves where before > 0 order by percent desc limit 10;
