package dynamo_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// BenchmarkPut stores items of 1 KB without HTTP, into a table without a stream, and
// reports how much memory an item takes beyond its data.
func BenchmarkPut(b *testing.B) {
	r := newRig(b)
	r.do("CreateTable", `{'TableName':'ttt','BillingMode':'PAY_PER_REQUEST',
		'AttributeDefinitions':[{'AttributeName':'p','AttributeType':'S'}],
		'KeySchema':[{'AttributeName':'p','KeyType':'HASH'}]}`)
	filler := strings.Repeat(`,"a%d":{"S":"`+strings.Repeat("v", 60)+`"}`, 1)
	var rest strings.Builder
	for i := range 12 {
		fmt.Fprintf(&rest, filler, i)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b.ReportAllocs()
	size := 0
	for i := 0; b.Loop(); i++ {
		item := fmt.Sprintf(`{"p":{"S":"item-%d"}%s}`, i, rest.String())
		size = len(item)
		if err := r.Put("ttt", []byte(item)); err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(b.N)-float64(size), "B/item-beside-data")
	runtime.KeepAlive(r)
}
