package guard

import (
	"bytes"
	"encoding/base64"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

func secretText(b byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, secretSize))
}

func sealer(t testing.TB, secrets ...byte) *Sealer {
	t.Helper()
	var texts []string
	for _, b := range secrets {
		texts = append(texts, secretText(b))
	}
	s, err := NewSealer(texts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var hats = Guard{Pipeline: "shop", Table: "Products", Key: []byte("\x01hats\x00\x00")}

func qualifierOf(g Guard) []byte { q := Qualifier(g.Pipeline, g.Table, g.Key); return q[:] }

func TestEveryFormIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-zA-Z0-9_.-]{1,12}`)
		g := Guard{Pipeline: name.Draw(t, "pipeline"), Table: name.Draw(t, "table"),
			Key: rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "key")}
		row := rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "row")
		s, err := NewSealer([]string{secretText(1)})
		if err != nil {
			t.Fatal(err)
		}
		sealed := g
		sealed.Sealed = true
		for _, qualifier := range [][]byte{qualifierOf(g), []byte(Exclusive)} {
			for _, x := range []struct {
				value []byte
				want  Guard
			}{
				{Append(nil, g.Pipeline, g.Table, g.Key), g},
				{s.Append(nil, g, row, qualifier), sealed},
			} {
				got, err := s.Read(x.value, row, qualifier)
				if diff := cmp.Diff(x.want, got); err != nil || diff != "" {
					t.Fatalf("%x: %v (-want +got):\n%s", x.value, err, diff)
				}
			}
		}
	})
}

func TestReadNeverPanics(t *testing.T) {
	s := sealer(t, 1)
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SliceOf(rapid.Byte()).Draw(t, "value")
		if rapid.Bool().Draw(t, "sealed") {
			value = append([]byte{sealedForm}, s.secrets[0].id[:rapid.IntRange(0, idSize).Draw(t, "id")]...)
			value = append(value, rapid.SliceOf(rapid.Byte()).Draw(t, "rest")...)
		}
		for _, r := range []*Sealer{nil, s} {
			_, _ = r.Read(value, []byte("row"), []byte("q"))
		}
	})
}

func TestGuardOfAnotherPipelineIsNotOurs(t *testing.T) {
	other := Guard{Pipeline: "other", Table: hats.Table, Key: hats.Key}
	var none *Sealer
	got, err := none.Read(Append(nil, other.Pipeline, other.Table, other.Key), []byte("row"), qualifierOf(other))
	if err != nil || got.Pipeline != "other" {
		t.Errorf("%+v, %v", got, err)
	}
	first := append([]byte(other.Table+"\x00"), other.Key...)
	if got, err = none.Read(first, []byte("row"), qualifierOf(other)); err == nil {
		t.Errorf("a value of an unknown form is read as %+v", got)
	}
	if got, err := none.Read(Append(nil, "shop", hats.Table, hats.Key), []byte("row"), qualifierOf(other)); err == nil {
		t.Errorf("a value of ours in the column of another item is %+v", got)
	}
}

func TestAnySecretOpensAndTheFirstSeals(t *testing.T) {
	row, qualifier := []byte("row"), qualifierOf(hats)
	value := sealer(t, 1).Append(nil, hats, row, qualifier)
	if bytes.Contains(value, []byte("hats")) || bytes.Contains(value, []byte("Products")) {
		t.Errorf("the sealed value shows the item: %q", value)
	}
	both := sealer(t, 2, 1)
	if got, err := both.Read(value, row, qualifier); err != nil || string(got.Key) != string(hats.Key) {
		t.Errorf("with the old secret second: %+v, %v", got, err)
	}
	anew := both.Append(nil, hats, row, qualifier)
	if got, err := sealer(t, 2).Read(anew, row, qualifier); err != nil || got.Unknown {
		t.Errorf("sealed by a pair, opened by its first: %+v, %v", got, err)
	}
	for name, s := range map[string]*Sealer{"another secret": sealer(t, 3), "no secret": nil} {
		got, err := s.Read(value, row, qualifier)
		if diff := cmp.Diff(Guard{Sealed: true, Unknown: true}, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestSealedValueOpensOnlyInItsPlace(t *testing.T) {
	s, row, qualifier := sealer(t, 1), []byte("row"), qualifierOf(hats)
	value := s.Append(nil, hats, row, qualifier)
	if again := s.Append(nil, hats, row, qualifier); !bytes.Equal(value, again) {
		t.Error("a repeated write gives other bytes")
	}
	for name, read := range map[string]func() (Guard, error){
		"another row":    func() (Guard, error) { return s.Read(value, []byte("rox"), qualifier) },
		"another column": func() (Guard, error) { return s.Read(value, row, []byte(Exclusive)) },
		"other bytes": func() (Guard, error) {
			altered := bytes.Clone(value)
			altered[len(altered)-1]++
			return s.Read(altered, row, qualifier)
		},
		"cut off": func() (Guard, error) { return s.Read(value[:9], row, qualifier) },
	} {
		if got, err := read(); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	nonce := func(g Guard, row string) string {
		return string(s.Append(nil, g, []byte(row), qualifier)[1+idSize : 1+idSize+nonceSize])
	}
	caps := Guard{Pipeline: "shop", Table: "Products", Key: []byte("caps")}
	if nonce(hats, "row") == nonce(caps, "row") || nonce(hats, "row") == nonce(hats, "rox") {
		t.Error("two contents or places share a nonce")
	}
}

func TestSecretOfAnotherSizeIsRefusedWithoutShowingIt(t *testing.T) {
	for _, text := range []string{"", "c2hvcnQ=", "not base64!", secretText(1)[4:]} {
		_, err := NewSealer([]string{secretText(2), text})
		if err == nil || text != "" && bytes.Contains([]byte(err.Error()), []byte(text)) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if s, err := NewSealer(nil); s != nil || err != nil {
		t.Errorf("without secrets: %v, %v", s, err)
	}
}

func BenchmarkSeal(b *testing.B) {
	s, row, qualifier := sealer(b, 1), []byte("row#0001"), qualifierOf(hats)
	var value []byte
	for b.Loop() {
		value = s.Append(value[:0], hats, row, qualifier)
	}
}

// TestQualifierAndSealAreThoseOfTheTransform: the write's item and the reader of guards agree.
func TestQualifierAndSealAreThoseOfTheTransform(t *testing.T) {
	for text, sealed := range map[string]bool{
		"preset: default": false, "{preset: default, pii: [name]}": false,
		`{pii: [pk], secrets: {s: "0123456789abcdef"}, families: {d: {}}, rules: [{name: r, match: {pk: "{p}"},
    row: "{p|hmac(s,32)}", cells: [{attr: v, to: "d:v"}]}]}`: true,
	} {
		mapping, problems := transform.ParseMapping("m.yaml", []byte(text))
		program, more := transform.Compile(transform.Table{Pipeline: "shop", Source: "Products", Mapping: mapping,
			Schema: change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'}}})
		if program == nil {
			t.Fatalf("%s: %v %v", text, problems, more)
		}
		var (
			dec change.Decoder
			w   transform.Write
		)
		c := &change.Change{Op: change.Insert, Version: 1, Keys: []byte(`{"pk":{"S":"hats"}}`),
			New: []byte(`{"pk":{"S":"hats"},"v":{"S":"1"}}`)}
		if err := program.Change(&dec, c, &w); err != nil {
			t.Fatal(err)
		}
		if q := Qualifier("shop", "Products", w.Item.Key); q != w.Item.Guard || w.Item.Pipeline != "shop" {
			t.Errorf("%s: qualifier %x, the transform has %x", text, q, w.Item.Guard)
		}
		if w.Item.Sealed != sealed || program.SealsKeys() != sealed {
			t.Errorf("%s: sealed is %v", text, w.Item.Sealed)
		}
	}
}
