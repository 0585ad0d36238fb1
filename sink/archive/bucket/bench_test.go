package bucket

import (
	"fmt"
	"testing"
)

// BenchmarkCreateInDirectory stores objects durably, as the archive does: MB/s with all syncs.
func BenchmarkCreateInDirectory(b *testing.B) {
	for _, size := range []int64{4 << 10, 1 << 20, 64 << 20} {
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			d := openDir(b, b.TempDir(), Options{})
			f := scratch(b, random(1, int(size)))
			b.SetBytes(size)
			for n := 0; b.Loop(); n++ {
				name := fmt.Sprintf("tr_table=T/tr_class=ttl/tr_dt=2026-05-04/tr_hr=%02d/%d", n%24, n)
				if err := d.Create(b.Context(), name, f, size); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
