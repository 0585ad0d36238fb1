package change

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestBrokenImageIsRefused(t *testing.T) {
	deep := strings.Repeat(`{"L":[`, 60) + strings.Repeat(`]}`, 60)
	deepMap := strings.Repeat(`{"M":{"b":`, 60) + `{"N":"1"}` + strings.Repeat(`}}`, 60)
	for name, raw := range map[string]string{
		"empty": ``, "null": `null`, "list": `[]`, "cut": `{"a":{"S":"x"}`, "behind": `{}{}`,
		"no type": `{"a":{}}`, "bare": `{"a":"x"}`, "two types": `{"a":{"S":"x","N":"1"}}`, "unknown type": `{"a":{"Q":"x"}}`,
		"number as JSON number": `{"a":{"N":1}}`, "text as number": `{"a":{"S":1}}`,
		"set of values": `{"a":{"SS":[{"S":"x"}]}}`,
		"list of texts": `{"a":{"L":["x"]}}`, "bool as text": `{"a":{"BOOL":"true"}}`, "bool prefix": `{"a":{"BOOL":truex}}`,
		"null as object": `{"a":{"NULL":{}}}`, "bad escape": `{"a":{"S":"\x"}}`, "bad hex": `{"a":{"S":"\u00g0"}}`,
		"short hex": `{"a":{"S":"\u00"}}`,
		"no text":   "{\"a\":{\"S\":\"\xff\"}}", "no text as name": "{\"\xff\":{\"S\":\"x\"}}",
		"half a rune":        "{\"a\":{\"S\":\"\xc3\"}}",
		"escape in the name": `{"\q":{"S":"x"}}`, "too deep": `{"a":` + deep + `}`, "too deep maps": `{"a":` + deepMap + `}`,
	} {
		if m, err := new(Decoder).Image([]byte(raw)); !errors.Is(err, ErrMalformed) || m != nil {
			t.Errorf("%s: %v, error %v; want ErrMalformed", name, m, err)
		}
	}
}

// The service nests 32 levels; all of them must come through.
func TestDeepestItemOfTheServiceIsDecoded(t *testing.T) {
	raw := `{"a":` + strings.Repeat(`{"M":{"b":`, 32) + `{"N":"1"}` + strings.Repeat(`}}`, 32) + `}`
	d := new(Decoder)
	for range 3 { // the depth does not add up
		if _, err := d.Image([]byte(raw)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEmptyIsNotAbsent(t *testing.T) {
	var d Decoder
	if m, err := d.Image(nil); m != nil || err != nil {
		t.Errorf("nil image decodes to %v, %v", m, err)
	}
	m, err := d.Image([]byte(`{}`))
	if m == nil || err != nil {
		t.Errorf("empty image decodes to nil, %v", err)
	}
	m, err = d.Image([]byte(`{"m":{"M":{}},"l":{"L":[]}}`))
	if err != nil || m.Get("m").M == nil || m.Get("l").L == nil {
		t.Errorf("%v, %v", m, err)
	}
	if m, err = d.PartialImage([]byte(`{"a":{"S":"x"}}`), func(string) bool { return false }); m == nil || err != nil {
		t.Errorf("nothing wanted decodes to nil, %v", err)
	}
}

// Depth is not width: an item may hold any number of maps and lists side by side.
func TestWideItemIsNotTooDeep(t *testing.T) {
	var wide []string
	for i := range 200 {
		wide = append(wide, fmt.Sprintf(`"m%d":{"M":{}},"l%d":{"L":[{"L":[]}]},"s%d":{"SS":[]}`, i, i, i))
	}
	if m, err := new(Decoder).Image([]byte(`{` + strings.Join(wide, ",") + `}`)); len(m) != 600 || err != nil {
		t.Fatalf("%d attributes, %v", len(m), err)
	}
}

func TestLargeBatchKeepsItsFirstImage(t *testing.T) {
	var d Decoder
	var all []Image
	for i := range 1000 {
		m, err := d.Image(fmt.Appendf(nil, `{"pk":{"N":"%d"},"l":{"L":[{"N":"%d"},{"M":{"x":{"N":"%d"}}}]}}`, i, i, i))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	for i, m := range all {
		if want := fmt.Sprint(i); m[0].Value.S != want || m[1].Value.L[0].S != want || m[1].Value.L[1].M[0].Value.S != want {
			t.Fatalf("image %d became %v", i, m)
		}
	}
}

// An image must stay what it was while later ones of its batch fill the arenas, and while one of
// them breaks.
func TestLaterImagesLeaveEarlierOnesAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := notationOf(t)
		var d Decoder
		for range 3 {
			d.Reset()
			images := rapid.SliceOfN(genImage(3), 1, 12).Draw(t, "images")
			var got []Image
			for _, m := range images {
				raw := n.image(m)
				x, err := d.Image([]byte(raw))
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, x)
				if _, err := d.Image([]byte(raw[:len(raw)-1])); err == nil {
					t.Fatal("a cut image was decoded")
				}
			}
			if d := cmp.Diff(images, got, equateEmptyLists); d != "" {
				t.Fatal(d)
			}
		}
	})
}

// equateEmptyLists takes an absent list for an empty one: generators make either.
var equateEmptyLists = cmp.FilterValues(func(a, b []Value) bool { return len(a) == 0 && len(b) == 0 },
	cmp.Comparer(func(a, b []Value) bool { return true }))

// Appending to what a Decoder returned must not write into a neighbour's memory.
func TestAppendToAnImageLeavesItsNeighbourAlone(t *testing.T) {
	var d Decoder
	a, _ := d.Image([]byte(`{"a":{"L":[{"S":"1"}]}}`))
	b, _ := d.Image([]byte(`{"b":{"L":[{"S":"2"}]}}`))
	_ = append(a, Attr{Name: "intruder"})
	_ = append(a[0].Value.L, Value{S: "intruder"})
	if b[0].Name != "b" || b[0].Value.L[0].S != "2" {
		t.Fatalf("neighbour is %v", b)
	}
}

func TestOnlyDecodesWhatIsWanted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := genImage(2).Draw(t, "image")
		var want Image
		for i, a := range m {
			if i%2 == 0 {
				want = append(want, a)
			}
		}
		got, err := new(Decoder).PartialImage([]byte(notationOf(t).image(m)),
			func(name string) bool { return want.Get(name) != nil })
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(append(Image{}, want...), got, equateEmptyLists); d != "" {
			t.Fatal(d)
		}
	})
}

func TestEscapesMeanWhatEncodingJSONSays(t *testing.T) {
	for _, s := range []string{
		`a\"b\\c\/d\b\f\n\r\te`, `\u0041\u00e9\u65e5`, `\ud83d\ude00`, `\ud83d`, `\ude00`, `\ud83dx`, `\ud83d\u0041`,
		`\ud83d\ud83d\ude00`, `\u0000`, `\uFFFF`, `\uD83D\uDE00`, `x\\`, `\\u0041`,
	} {
		var want string
		if err := json.Unmarshal([]byte(`"`+s+`"`), &want); err != nil {
			t.Fatal(err)
		}
		if got, ok := unescape([]byte(s)); !ok || got != want {
			t.Errorf("%s is %q, %t; want %q", s, got, ok, want)
		}
	}
}

// FuzzDecodeImage holds the decoder to encoding/json: of valid JSON in UTF-8 it takes
// exactly the images in DynamoDB's form, and reads the same values.
func FuzzDecodeImage(f *testing.F) {
	for i := range 20 {
		seed := uint64(i)
		f.Add([]byte(rapid.Custom(func(t *rapid.T) string {
			return notationOf(t).image(genImage(3).Draw(t, "m"))
		}).Example(int(seed))))
	}
	f.Add([]byte(`{"a":{"S":"\ud83d\ude00"},"a":{"NULL":true}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var d Decoder
		got, err := d.Image(raw)
		if err == nil {
			again, err := new(Decoder).Image(got.AppendJSON(nil))
			if err != nil {
				t.Fatalf("canonical form of %s is refused: %v", raw, err)
			}
			if a, b := got.AppendJSON(nil), again.AppendJSON(nil); !bytes.Equal(a, b) {
				t.Fatalf("canonical form is not stable: %s, %s", a, b)
			}
		}
		if !json.Valid(raw) || !utf8.Valid(raw) {
			return
		}
		want, ok := oracleImage(raw, 0)
		if ok != (err == nil) {
			t.Fatalf("error %v, encoding/json says %t: %s", err, ok, raw)
		}
		if d := cmp.Diff(want, got, equateEmptyLists); ok && d != "" {
			t.Fatal(d)
		}
	})
}

func oracleImage(raw []byte, depth int) (Image, bool) {
	all, ok := members(raw)
	m := Image{}
	for _, x := range all {
		v, good := oracleValue(x.value, depth+1)
		ok = ok && good
		m = append(m, Attr{x.name, v})
	}
	return m, ok && depth < maxDepth
}

func oracleValue(raw []byte, depth int) (v Value, ok bool) {
	all, ok := members(raw)
	if !ok || len(all) != 1 || !bytes.Contains(raw, fmt.Appendf(nil, `"%s"`, all[0].name)) {
		return v, false // the last: a type written with escapes
	}
	x := all[0].value
	for v.Kind = KindNull; int(v.Kind) < len(kindNames) && v.Kind.String() != all[0].name; v.Kind++ {
	}
	switch v.Kind {
	case KindNull, KindBool:
		v.Bool = v.Kind == KindBool && string(x) == "true"
		return v, string(x) == "true" || string(x) == "false"
	case KindString, KindNumber, KindBinary:
		return v, x[0] == '"' && json.Unmarshal(x, &v.S) == nil
	case KindMap:
		m, ok := oracleImage(x, depth)
		v.M = m
		return v, ok
	case KindList, KindStringSet, KindNumberSet, KindBinarySet:
		return oracleElements(v, x, depth)
	}
	return v, false
}

func oracleElements(v Value, x []byte, depth int) (Value, bool) {
	var list []json.RawMessage
	if x[0] != '[' || json.Unmarshal(x, &list) != nil || depth >= maxDepth {
		return v, false
	}
	ok := true
	for _, raw := range list {
		e := Value{Kind: v.Kind - KindStringSet + KindString}
		var good bool
		if v.Kind == KindList {
			e, good = oracleValue(raw, depth+1)
		} else {
			good = raw[0] == '"' && json.Unmarshal(raw, &e.S) == nil
		}
		v.L, ok = append(v.L, e), ok && good
	}
	return v, ok
}
