package change

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestKeyHasOneForm(t *testing.T) {
	schema := KeySchema{Partition: KeyAttr{"pk", 'S'}, Sort: &KeyAttr{"sk", 'N'}}
	var d Decoder
	for _, raw := range []string{
		`{"pk":{"S":"hats"},"sk":{"N":"1"}}`, `{"sk":{"N":"1.0"},"pk":{"S":"hats"}}`,
		`{"x":{"S":"y"},"sk":{"N":"10e-1"},"pk":{"S":"\u0068ats"}}`,
	} {
		m, err := d.Image([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		got, err := schema.Canonical(nil, m)
		if d := cmp.Diff(`{"pk":{"S":"hats"},"sk":{"N":"1"}}`, string(got)); d != "" || err != nil {
			t.Error(err, d)
		}
	}
}

func TestKeyOfAnotherTableIsRefused(t *testing.T) {
	schema := KeySchema{Partition: KeyAttr{"pk", 'S'}, Sort: &KeyAttr{"sk", 'N'}}
	for name, m := range map[string]Image{
		"no partition key": {{"sk", Value{Kind: KindNumber, S: "1"}}},
		"no sort key":      {{"pk", Value{Kind: KindString, S: "x"}}},
		"another type":     {{"pk", Value{Kind: KindString, S: "x"}}, {"sk", Value{Kind: KindString, S: "1"}}},
		"a set":            {{"pk", Value{Kind: KindStringSet}}, {"sk", Value{Kind: KindNumber, S: "1"}}},
	} {
		if got, err := schema.Canonical(nil, m); err == nil {
			t.Errorf("%s: key %s", name, got)
		}
	}
}

func genKey(schema KeySchema) *rapid.Generator[Image] {
	kinds := map[byte]Kind{'S': KindString, 'N': KindNumber, 'B': KindBinary}
	return rapid.Custom(func(t *rapid.T) Image {
		m := Image{{schema.Partition.Name, genScalar(kinds[schema.Partition.Type]).Draw(t, "pk")}}
		if schema.Sort != nil {
			m = append(m, Attr{schema.Sort.Name, genScalar(kinds[schema.Sort.Type]).Draw(t, "sk")})
		}
		return m
	})
}

func genSchema() *rapid.Generator[KeySchema] {
	return rapid.Custom(func(t *rapid.T) KeySchema {
		types := rapid.SampledFrom([]byte("SNB"))
		k := KeySchema{Partition: KeyAttr{genText().Draw(t, "p"), types.Draw(t, "pt")}}
		if name := genText().Draw(t, "s"); name != k.Partition.Name && rapid.Bool().Draw(t, "sorted") {
			k.Sort = &KeyAttr{name, types.Draw(t, "st")}
		}
		return k
	})
}

// sameKey is equality as the service sees it: numbers by value.
func sameKey(a, b Image) bool {
	for i := range a {
		x, y := a[i].Value.S, b[i].Value.S
		if a[i].Value.Kind == KindNumber {
			x, y = canonicalOr(x), canonicalOr(y)
		}
		if x != y {
			return false
		}
	}
	return true
}

// Two items must never share a guard, one item never have two.
func TestCanonicalKeyIsInjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema := genSchema().Draw(t, "schema")
		n := notationOf(t)
		a := genKey(schema).Draw(t, "a")
		b := genKey(schema).Draw(t, "b")
		if rapid.Bool().Draw(t, "same") {
			b = n.shuffled(Value{Kind: KindMap, M: a}).M
		}
		var d Decoder
		canonical := func(m Image) string {
			m, err := d.Image([]byte(n.image(m)))
			if err != nil {
				t.Fatal(err)
			}
			k, err := schema.Canonical(nil, m)
			if err != nil || !json.Valid(k) {
				t.Fatalf("%s, %v", k, err)
			}
			return string(k)
		}
		ka, kb := canonical(a), canonical(b)
		for i := range b { // back in the order of the schema
			if b[i].Name != a[i].Name {
				b[0], b[1] = b[1], b[0]
				break
			}
		}
		if (ka == kb) != sameKey(a, b) {
			t.Fatalf("%v and %v became %s and %s", a, b, ka, kb)
		}
		if (ka == kb) != (HashKey([]byte(ka)) == HashKey([]byte(kb))) {
			t.Fatalf("hashes of %s and %s", ka, kb)
		}
	})
}

// A no-op write, a retry and a scan show the same item in another order: its bytes must not differ.
func TestEqualValuesHaveEqualBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := notationOf(t)
		m := genImage(3).Draw(t, "image")
		other := n.shuffled(Value{Kind: KindMap, M: m}).M
		var d Decoder
		decode := func(raw string) Image {
			x, err := d.Image([]byte(raw))
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
		a, b := decode(n.image(m)).AppendJSON(nil), decode(n.image(other)).AppendJSON(nil)
		if !bytes.Equal(a, b) || !json.Valid(a) {
			t.Fatalf("%s\n%s", a, b)
		}
		if again := decode(string(a)).AppendJSON(nil); !bytes.Equal(a, again) {
			t.Fatalf("%s\n%s", a, again)
		}
		if before := m.AppendJSON(nil); !bytes.Equal(before, a) {
			t.Fatalf("%s\n%s", before, a)
		}
	})
}

func TestTextIsWrittenAsEncodingJSONReadsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(genText(), rapid.Map(rapid.SliceOf(rapid.Byte()),
			func(b []byte) string { return string(b) })).Draw(t, "text")
		var got string
		if err := json.Unmarshal(AppendString(nil, s), &got); err != nil {
			t.Fatal(err)
		}
		if want := string([]rune(s)); got != want {
			t.Fatalf("%q became %q", s, got)
		}
	})
}
