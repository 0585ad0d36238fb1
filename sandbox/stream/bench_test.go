package stream_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"github.com/tailrace-cdc/replicator/sandbox/stream"
)

// image returns a JSON image of about n bytes.
func image(pk string, n int) []byte {
	return fmt.Appendf(nil, `{"pk":{"S":%q},"body":{"S":"%s"}}`, pk, bytes.Repeat([]byte("x"), n))
}

func change(i, size int) stream.Change {
	pk := fmt.Sprintf("item%07d", i%10000)
	keys := fmt.Appendf(nil, `{"pk":{"S":%q}}`, pk)
	img := image(pk, size)
	return stream.Change{
		Table: "Orders", Op: "MODIFY", Keys: keys, New: img, Old: img, PartitionKey: []byte(pk), ItemKey: keys,
		SizeBytes: 2*size + 40,
	}
}

func loaded(b *testing.B, partitions, records, size int) (*stream.Engine, string) {
	b.Helper()
	e := stream.New(stream.Options{Partitions: partitions})
	arn, _ := e.Enable("Orders", "NEW_AND_OLD_IMAGES")
	for i := range records {
		e.Commit(change(i, size))
	}
	return e, arn
}

func iteratorOf(b *testing.B, e *stream.Engine, arn, shard string) string {
	b.Helper()
	body, _ := json.Marshal(map[string]string{"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"})
	status, reply := e.Handle("GetShardIterator", body)
	var out struct{ ShardIterator string }
	if err := json.Unmarshal(reply, &out); err != nil || status != 200 {
		b.Fatalf("%d %s %v", status, reply, err)
	}
	return out.ShardIterator
}

// BenchmarkGetRecords reports records per second of one goroutine.
func BenchmarkGetRecords(b *testing.B) {
	const records = 20000
	e, arn := loaded(b, 1, records, 1000)
	first := iteratorOf(b, e, arn, e.OpenShards("Orders")[0])
	mark := []byte(`"NextShardIterator":"`)
	read := 0
	b.ResetTimer()
	for next := first; b.Loop(); {
		status, reply := e.Handle("GetRecords", []byte(`{"ShardIterator":"`+next+`"}`))
		if status != 200 {
			b.Fatal(string(reply))
		}
		n := bytes.Count(reply, []byte(`"eventID"`))
		read += n
		if at := bytes.Index(reply, mark); n == 0 {
			next = first
		} else {
			rest := reply[at+len(mark):]
			next = string(rest[:bytes.IndexByte(rest, '"')])
		}
		e.Release(reply)
	}
	b.ReportMetric(float64(read)/b.Elapsed().Seconds(), "records/s")
}

func BenchmarkCommit(b *testing.B) {
	e := stream.New(stream.Options{})
	e.Enable("Orders", "NEW_AND_OLD_IMAGES")
	c := change(1, 1000)
	b.ReportAllocs()
	for b.Loop() {
		e.Commit(c)
	}
}

// BenchmarkMemory reports bytes held per byte of records, and per idle shard.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		e, _ := loaded(b, 4, 50000, 1000)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(50000*2450), "bytes/byte")
		before = after
		idle := stream.New(stream.Options{Partitions: 10000})
		idle.Enable("Idle", "KEYS_ONLY")
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/10000, "bytes/shard")
		runtime.KeepAlive(e)
		runtime.KeepAlive(idle)
	}
}
