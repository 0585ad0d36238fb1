package rollout

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// FuzzDecode: no content of the row #format#NAME makes the reader panic. What it takes is written
// again as it is, and a row above what this build reads is refused with the version that reads it.
func FuzzDecode(f *testing.F) {
	stored, err := json.Marshal(&Row{Format: RowFormat, Log: checkpoint.Format, Since: time.Unix(1_790_000_000, 0).UTC(),
		Build: "1.2.3"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(stored)
	for _, odd := range []string{
		``, `null`, `{}`, `[]`, `{"format":99}`, `{"format":1,"log":6,"build":"9.0.0"}`, `{"log":-1}`,
	} {
		f.Add([]byte(odd))
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		r, err := decode(stored)
		if err != nil || r == nil {
			return
		}
		if refused := r.Check("shop"); (refused != nil) != (r.Log > checkpoint.Format) {
			t.Errorf("%s: %v", stored, refused)
		}
		a, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("%s: %v", stored, err)
		}
		again, err := decode(a)
		if err != nil {
			t.Fatalf("%s became %s: %v", stored, a, err)
		}
		if b, err := json.Marshal(again); err != nil || string(a) != string(b) {
			t.Errorf("%s became %s, %v", a, b, err)
		}
	})
}
