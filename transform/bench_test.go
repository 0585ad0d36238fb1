//go:build unix

package transform

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

// wideItem has 15 attributes and about 1 KB of JSON.
func wideItem() string {
	parts := []string{`"pk":{"S":"customer-000123"}`, `"sk":{"S":"order#2026-11-21#000045"}`}
	for i := range 7 {
		parts = append(parts, fmt.Sprintf(`"text%d":{"S":"%s"}`, i, strings.Repeat("lorem ipsum ", 6)))
	}
	parts = append(parts, `"price":{"N":"1299.95"}`, `"count":{"N":"42"}`, `"open":{"BOOL":true}`, `"note":{"NULL":true}`,
		`"blob":{"B":"AAECAwQFBgcICQ=="}`, `"at":{"N":"1700000000"}`)
	return "{" + strings.Join(parts, ",") + "}"
}

func benchmarkChange(b *testing.B, p *Program, c *change.Change) {
	var d change.Decoder
	w := new(Write)
	b.ReportAllocs()
	b.SetBytes(int64(len(c.New)))
	began := cpuTime()
	for b.Loop() {
		d.Reset()
		if err := p.Change(&d, c, w); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuTime()-began)/float64(b.N), "cpu-ns/op")
}

// cpuTime is what the process has used: on a busy machine it says more than the clock on the wall.
func cpuTime() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func BenchmarkDefaultPreset(b *testing.B) {
	p := compiled(b, Table{Schema: schema("pk:S", "sk:S"), StripGlobal: true}, "")
	benchmarkChange(b, p, step(b, p, 1000, wideItem(), strings.Replace(wideItem(), "42", "43", 1)))
}

func BenchmarkDocumentRaw(b *testing.B) {
	p := compiled(b, Table{Schema: schema("pk:S", "sk:S")}, `
families: {d: {max_versions: 1}}
rules:
- {name: item, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [{doc: all, to: "d:j", format: raw}]}`)
	benchmarkChange(b, p, step(b, p, 1000, wideItem(), wideItem()))
}

func BenchmarkDocumentCanonical(b *testing.B) {
	p := compiled(b, Table{Schema: schema("pk:S", "sk:S")}, "preset: document")
	benchmarkChange(b, p, step(b, p, 1000, wideItem(), wideItem()))
}

func BenchmarkSharedRowDiff(b *testing.B) {
	p := compiled(b, Table{Schema: schema("pk:S", "sk:S")}, `
families: {d: {max_versions: 1}}
rules:
- {name: item, match: {pk: "{p}", sk: "{s}"}, row: "{p}", cells: [{attrs: all, except: [pk, sk], to: "d:{s}/{attr}"}]}`)
	benchmarkChange(b, p, step(b, p, 1000, wideItem(), strings.Replace(wideItem(), "42", "43", 1)))
}

func BenchmarkNamedInt64(b *testing.B) {
	p := compiled(b, Table{Schema: schema("pk:S", "sk:S")}, `
families: {d: {max_versions: 1}}
rules:
- {name: item, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}",
    cells: [{attr: count, to: "d:count", as: int64}, {attr: price, to: "d:price"}]}`)
	benchmarkChange(b, p, step(b, p, 1000, wideItem(), wideItem()))
}
