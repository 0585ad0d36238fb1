package attr_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

func TestNumbersAreNormalized(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "-0.00": "0", "0e99": "0", "1.0": "1", "+5": "5", "007": "7", "12.50": "12.5",
		".5": "0.5", "5.": "5",
		"1e3": "1000", "1E-3": "0.001", "-1.20e1": "-12",
		"123456789012345678901234567890.12345678":      "123456789012345678901234567890.12345678",
		"9.9999999999999999999999999999999999999E+125": strings.Repeat("9", 38) + strings.Repeat("0", 88),
		"1e37": "10000000000000000000000000000000000000", "1e38": "1" + strings.Repeat("0",
			38), "-12e40": "-12" + strings.Repeat("0", 40),
		"0." + strings.Repeat("0", 129) + "1": "0." + strings.Repeat("0", 129) + "1",
	} {
		if got, err := attr.Normalize(in); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"", " 1", "1 ", "NaN", "Infinity", "-", "e5", "1e", "1e1.5", "0x10", "1_000", "1e+-2",
		"--1", "1.2.3", "1e126", "1e-131", strings.Repeat("1", 39)} {
		if got, err := attr.Normalize(in); err == nil {
			t.Errorf("%q is taken for %s", in, got)
		}
	}
}

func numbers() *rapid.Generator[string] {
	return rapid.StringMatching(`-?[0-9]{1,12}(\.[0-9]{1,8})?([eE][-+]?[0-9]{1,2})?`)
}

func rat(t *rapid.T, s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		t.Fatalf("%q is no number", s)
	}
	return r
}

func TestNumbersBehaveAsRationals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := numbers().Draw(t, "x"), numbers().Draw(t, "y")
		a, err := attr.Normalize(x)
		if err != nil {
			t.Fatal(err)
		}
		b, err := attr.Normalize(y)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := attr.Normalize(a); err != nil || again != a || rat(t, a).Cmp(rat(t, x)) != 0 {
			t.Fatalf("%s becomes %s becomes %s (%v)", x, a, again, err)
		}
		want := rat(t, x).Cmp(rat(t, y))
		if got := attr.CompareNumbers(a, b); got != want {
			t.Fatalf("compare %s %s: %d", a, b, got)
		}
		if got := bytes.Compare(attr.AppendSortable(nil, a), attr.AppendSortable(nil, b)); got != want {
			t.Fatalf("sortable %s %s: %d", a, b, got)
		}
		sum, err := attr.Add(a, b, true)
		if err == nil && rat(t, sum).Cmp(new(big.Rat).Sub(rat(t, x), rat(t, y))) != 0 {
			t.Fatalf("%s - %s = %s", a, b, sum)
		}
	})
}

func TestSumsBeyond38DigitsOverflow(t *testing.T) {
	big, one := "1"+strings.Repeat("0", 50), "1"
	for _, c := range []struct {
		a, b  string
		minus bool
		want  string // empty: an overflow
	}{
		{big, one, false, ""}, {big, one, true, ""}, {one, big, true, ""}, {"0.00000000000000000001", big, false, ""},
		{big, big, true, "0"}, {big, big, false, "2" + strings.Repeat("0", 50)},
		{"9" + strings.Repeat("0", 125), "9" + strings.Repeat("0", 125), false, ""},
		{strings.Repeat("9", 38), one, false, "1" + strings.Repeat("0", 38)},
	} {
		got, err := attr.Add(c.a, c.b, c.minus)
		overflow := err != nil && strings.HasPrefix(err.Message, "Number overflow.")
		if got != c.want || overflow != (c.want == "") {
			t.Errorf("%s and %s, minus %t: %q, %v, want %q", c.a, c.b, c.minus, got, err, c.want)
		}
	}
}

// attributeNames draws names, which are not empty.
func attributeNames() *rapid.Generator[string] { return rapid.StringN(1, -1, -1) }

// values draws attribute values as the wire has them.
func values(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{
		rapid.Map(rapid.String(), func(s string) any { return map[string]any{"S": s} }),
		rapid.Map(numbers(), func(s string) any { return map[string]any{"N": s} }),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) any { return map[string]any{"B": b} }),
		rapid.Map(rapid.Bool(), func(b bool) any { return map[string]any{"BOOL": b} }),
		rapid.Just[any](map[string]any{"NULL": true}),
		rapid.Map(rapid.SliceOfNDistinct(rapid.String(), 1, 4, rapid.ID),
			func(s []string) any { return map[string]any{"SS": s} }),
	}
	if depth > 0 {
		kinds = append(kinds,
			rapid.Map(rapid.SliceOfN(values(depth-1), 0, 3), func(l []any) any { return map[string]any{"L": l} }),
			rapid.Map(rapid.MapOfN(attributeNames(), values(depth-1), 0, 3),
				func(m map[string]any) any { return map[string]any{"M": m} }))
	}
	return rapid.OneOf(kinds...)
}

func TestNormalFormIsStableAndEqualityIsBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.MapOfN(attributeNames(), values(3), 0, 4).Draw(t, "item")
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		n, err := wire.Parse(string(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if bad := attr.CheckMapShape(n); bad != nil {
			t.Fatal(bad)
		}
		m, bad := attr.DecodeMap(n)
		if bad != nil {
			t.Fatalf("%s: %v", text, bad)
		}
		out := m.AppendJSON(nil)
		if !json.Valid(out) {
			t.Fatalf("not JSON: %s", out)
		}
		again := attr.Stored(out)
		a, b := attr.Value{Kind: attr.M, Map: m}, attr.Value{Kind: attr.M, Map: again}
		if !a.Equal(&b) || !bytes.Equal(again.AppendJSON(nil), out) || m.Size() != again.Size() {
			t.Fatalf("%s became %s", out, again.AppendJSON(nil))
		}
	})
}

func TestLevelsOfNestingEndAt32(t *testing.T) {
	nest := func(levels int) *wire.Node {
		n, err := wire.Parse(`{"a":` + strings.Repeat(`{"L":[`, levels) + `{"S":""}` + strings.Repeat(`]}`, levels) + `}`)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if _, err := attr.DecodeMap(nest(32)); err != nil {
		t.Error(err)
	}
	if _, err := attr.DecodeMap(nest(33)); err == nil {
		t.Error("33 levels pass")
	}
}

func TestSizesAreTheServices(t *testing.T) {
	for in, want := range map[string]int{
		`{}`: 0, `{"ab":{"S":"xyz"}}`: 5, `{"a":{"S":"é"}}`: 3, `{"a":{"BOOL":true}}`: 2,
		`{"a":{"NULL":true}}`: 2, `{"a":{"B":"AAEC"}}`: 4,
		`{"a":{"N":"0"}}`: 2, `{"a":{"N":"5"}}`: 3, `{"a":{"N":"-5"}}`: 4, `{"a":{"N":"1234"}}`: 4,
		`{"a":{"L":[]}}`: 4, `{"a":{"L":[{"S":"xy"}]}}`: 7, `{"a":{"M":{"k":{"S":"xy"}}}}`: 8, `{"a":{"SS":["x","yz"]}}`: 4,
	} {
		if got := attr.Stored([]byte(in)).Size(); got != want {
			t.Errorf("%s: got %d, want %d", in, got, want)
		}
	}
}
