package change

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// benchPage is a full page: records with 15 attributes, some of them nested, and images of 1 KB
// each: 2.4 KB of JSON a record, 1 MB in all.
func benchPage() []byte {
	rng := rand.New(rand.NewPCG(1, 1))
	word := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte('a' + rng.IntN(26))
		}
		return string(b)
	}
	image := func(i int) string {
		var b strings.Builder
		fmt.Fprintf(&b, `{"pk":{"S":"customer#%08d"},"sk":{"N":"%d"}`, i, 1_700_000_000+i)
		for a := range 8 {
			fmt.Fprintf(&b, `,"text%d":{"S":"%s"}`, a, word(72))
		}
		fmt.Fprintf(&b, `,"price":{"N":"%d.%02d"},"active":{"BOOL":true},"none":{"NULL":true}`, rng.IntN(1000), rng.IntN(100))
		fmt.Fprintf(&b, `,"tags":{"SS":["%s","%s"]},"address":{"M":{"street":{"S":"%s"},"zip":{"N":"12345"},"lines":{"L":[{`+
			`"S":"a"},{"S":"b"}]}}}}`, word(8), word(9), word(16))
		return b.String()
	}
	var recs []string
	for i := range 430 {
		recs = append(recs, fmt.Sprintf(`{"awsRegion":"eu-west-1","dynamodb":{"ApproximateCreationDateTime":1795257720,`+
			`"Keys":{"pk":{"S":"customer#%08d"},"sk":{"N":"%d"}},"NewImage":%s,"OldImage":%s,"SequenceNumber":"1%025d",`+
			`"SizeBytes":2100,"StreamViewType":"NEW_AND_OLD_IMAGES"},"eventID":"%032x","eventName":"MODIFY",`+
			`"eventSource":"aws:dynamodb","eventVersion":"1.1"}`,
			i, 1_700_000_000+i, image(i), image(i), i, i))
	}
	return []byte(`{"NextShardIterator":"arn:aws:dynamodb:eu-west-1:123456789012:table/t/stream/2026|1|` +
		word(200) + `","Records":[` + strings.Join(recs, ",") + `]}`)
}

func perRecord(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/record")
}

func benchRecords(b *testing.B) []Record {
	recs, _, err := ScanPage(benchPage(), nil)
	if err != nil {
		b.Fatal(err)
	}
	return recs
}

func BenchmarkScanPage(b *testing.B) {
	page := benchPage()
	recs := make([]Record, 0, 1000)
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if recs, _, err = ScanPage(page, recs); err != nil {
			b.Fatal(err)
		}
	}
	perRecord(b, len(recs))
}

func BenchmarkDecodeBothImages(b *testing.B) {
	recs := benchRecords(b)
	var d Decoder
	b.ReportAllocs()
	for b.Loop() {
		d.Reset()
		for i := range recs {
			if _, err := d.Image(recs[i].New); err != nil {
				b.Fatal(err)
			}
			if _, err := d.Image(recs[i].Old); err != nil {
				b.Fatal(err)
			}
		}
	}
	perRecord(b, len(recs))
}

func BenchmarkCanonicalKey(b *testing.B) {
	recs := benchRecords(b)
	schema := KeySchema{Partition: KeyAttr{"pk", 'S'}, Sort: &KeyAttr{"sk", 'N'}}
	var d Decoder
	var key []byte
	b.ReportAllocs()
	for b.Loop() {
		for i := range recs {
			d.Reset()
			m, err := d.Image(recs[i].Keys)
			if err != nil {
				b.Fatal(err)
			}
			if key, err = schema.Canonical(key[:0], m); err != nil {
				b.Fatal(err)
			}
			recs[i].KeyHash = HashKey(key)
		}
	}
	perRecord(b, len(recs))
}

func BenchmarkAppendRecords(b *testing.B) {
	recs := benchRecords(b)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendRecords(buf[:0], recs)
	}
	perRecord(b, len(recs))
}

func BenchmarkDecodeRecords(b *testing.B) {
	recs := benchRecords(b)
	wire := AppendRecords(nil, recs)
	b.ReportAllocs()
	for b.Loop() {
		if err := DecodeRecords(wire, Feed{}, func(*Change) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	perRecord(b, len(recs))
}

func BenchmarkAppendJSON(b *testing.B) {
	recs := benchRecords(b)
	m, err := new(Decoder).Image(recs[0].New)
	if err != nil {
		b.Fatal(err)
	}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = m.AppendJSON(buf[:0])
	}
	perRecord(b, 1)
}
