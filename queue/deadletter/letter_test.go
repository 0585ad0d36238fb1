package deadletter

import (
	"testing"
)

func FuzzDecode(f *testing.F) {
	b, err := encode(&Letter{ID: "00", Raw: []byte(`{"eventID":"1"}`)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)-3])
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, err := decode(b); err == nil {
			_, _ = l.Change()
		}
	})
}
