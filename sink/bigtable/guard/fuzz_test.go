package guard

import (
	"bytes"
	"testing"
)

// FuzzRead: no value of a guard makes the reader panic, and what it takes is the value that a build
// writes for the same item in the same place.
func FuzzRead(f *testing.F) {
	s := sealer(f, 1)
	row, own := []byte("hats#fedora"), qualifierOf(hats)
	f.Add(Append(nil, hats.Pipeline, hats.Table, hats.Key), row, own)
	f.Add(Append(nil, "other", "A.b-c_d", nil), row, []byte(Exclusive))
	f.Add(append([]byte(hats.Table+"\x00"), hats.Key...), row, own)
	f.Add(append([]byte(hats.Table+"\x00"), hats.Key...), row, []byte("i"))
	f.Add(s.Append(nil, hats, row, own), row, own)
	f.Add(s.Append(nil, hats, row, own)[:20], row, own)
	f.Add([]byte{}, []byte{}, []byte{})
	f.Add([]byte{plainForm, 0, 0}, row, []byte("i"))
	f.Fuzz(func(t *testing.T, value, row, qualifier []byte) {
		for _, r := range []*Sealer{nil, s} {
			g, err := r.Read(value, row, qualifier)
			if err != nil || g.Unknown {
				continue
			}
			var again []byte
			if g.Sealed {
				again = s.Append(nil, g, row, qualifier)
			} else {
				again = Append(nil, g.Pipeline, g.Table, g.Key)
			}
			if !bytes.Equal(again, value) {
				t.Errorf("%q is read as %+v, which is written as %q", value, g, again)
			}
			if !belongs(g, qualifier) {
				t.Errorf("%+v is read in column %q", g, qualifier)
			}
		}
	})
}
