package encode

import (
	"bytes"
	"fmt"
	"math/big"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/change"
)

func value(t testing.TB, typed string) *change.Value {
	t.Helper()
	v, err := ParseDynamoJSON([]byte(typed))
	if err != nil {
		t.Fatal(err)
	}
	return &v
}

func TestEncodings(t *testing.T) {
	for _, tt := range []struct {
		name   string
		encode func([]byte, *change.Value) ([]byte, error)
		in     string
		want   string
	}{
		{"natural number", Natural, `{"N":"00012.500"}`, "12.5"},
		{"natural minus zero", Natural, `{"N":"-0.0"}`, "0"},
		{"natural exponent", Natural, `{"N":"1.5e30"}`, "1500000000000000000000000000000"},
		{"natural far exponent", Natural, `{"N":"15E+99"}`, "1.5E+100"},
		{"natural null", Natural, `{"NULL":true}`, ""},
		{"natural set in any order", Natural, `{"SS":["b","a","c"]}`, `["a","b","c"]`},
		{"natural set of equal numbers", Natural, `{"NS":["1","1.0"]}`, `[1]`},
		{"natural tags long numbers", Natural, `{"L":[{"N":"1234567890123456"},{"NS":["1"]},{"M":{"$n":{"S":"x"}}}]}`,
			`[{"$n":"1234567890123456"},{"$ns":[1]},{"$$n":"x"}]`},
		{"json keeps JSON text", JSON, `{"S":" {\"a\": 0.10}"}`, ` {"a": 0.10}`},
		{"json quotes other text", JSON, `{"S":"{no"}`, `"{no"`},
		{"json writes long numbers as text", JSON, `{"M":{"n":{"N":"12345678901234567890"}}}`,
			`{"n":"12345678901234567890"}`},
		{"int64 of a written-out exponent", Int64, `{"N":"1E+2"}`, "\x00\x00\x00\x00\x00\x00\x00\x64"},
		// What Google's tool was seen to write.
		{"google decimal keeps its zeros", Google, `{"N":"0.10"}`, "0.10"},
		{"google small decimal", Google, `{"N":"-0.0000000001"}`, "-1E-10"},
		{"google exponent", Google, `{"N":"1.5E+30"}`, "1.5E+30"},
		{"google integer", Google, `{"N":"0000012"}`, "12"},
		{"google beyond 64 bits, where the tool fails", Google, `{"N":"9223372036854775808"}`, "9223372036854775808"},
		{"google binary twice base64", Google, `{"B":"AQID"}`, "QVFJRA=="},
		{"google set in hash order", Google, `{"SS":["b","a","c"]}`, `["a","b","c"]`},
		{"google number set in hash order", Google, `{"NS":["10.5","20","30.75"]}`, `[20,10.5,30.75]`},
		{"google list", Google, `{"L":[{"NULL":true},{"M":{}},{"N":"1.0"},{"BOOL":false},{"B":"AQI="}]}`,
			`[null,{},1.0,false,"QVFJPQ=="]`},
		{"google does not escape HTML", Google, `{"L":[{"S":"<a href>"}]}`, `["<a href>"]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.encode(nil, value(t, tt.in))
			if err != nil || string(got) != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestWrongTypesAreRefused(t *testing.T) {
	for name, f := range map[string]func([]byte, *change.Value) ([]byte, error){"int64": Int64, "float64": Float64,
		"decimal": Decimal, "bool1": Bool1, "raw": Raw} {
		if _, err := f(nil, value(t, `{"L":[]}`)); err == nil {
			t.Errorf("%s took a list", name)
		}
	}
	for _, n := range []string{"9223372036854775808", "1.5", "1E+30"} {
		if _, err := Int64(nil, &change.Value{Kind: change.KindNumber, S: n}); err == nil {
			t.Errorf("int64 took %s", n)
		}
	}
}

// drawNumber draws any number of DynamoDB, in canonical form.
func drawNumber(t *rapid.T, label string) string {
	s := rapid.StringMatching(`-?[0-9]{1,19}(\.[0-9]{1,18})?(E[+-]?[0-9]{1,2})?`).Draw(t, label)
	c, err := change.CanonicalNumber(s)
	if err != nil {
		return "0"
	}
	return c
}

func TestOrderedNumbersSortByValueAndComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawNumber(t, "a"), drawNumber(t, "b")
		x, errx := OrderedNumber(nil, a)
		y, erry := OrderedNumber(nil, b)
		ra, _ := new(big.Rat).SetString(a)
		rb, _ := new(big.Rat).SetString(b)
		if errx != nil || erry != nil || bytes.Compare(x, y) != ra.Cmp(rb) {
			t.Fatalf("%s → %s, %s → %s: order differs (%v, %v)", a, x, b, y, errx, erry)
		}
		if back, err := parseOrderedNumber(string(x)); err != nil || back != a {
			t.Fatalf("%s → %s → %s, %v", a, x, back, err)
		}
	})
}

func TestFastNumbersAreCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`-?[0-9]{1,5}\.?[0-9]{0,4}`).Draw(t, "number")
		c, err := change.CanonicalNumber(s)
		got, goterr := Number(nil, s)
		if (err == nil) != (goterr == nil) || err == nil && string(got) != c {
			t.Fatalf("%q: %q, %v; canonical %q, %v", s, got, goterr, c, err)
		}
	})
}

func TestSetsGiveEqualBytesInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.SliceOfNDistinct(rapid.StringN(0, 4, 8), 1, 6, rapid.ID[string]).Draw(t, "members")
		set := func(list []string) *change.Value {
			v := &change.Value{Kind: change.KindStringSet}
			for _, s := range list {
				v.L = append(v.L, change.Value{Kind: change.KindString, S: s})
			}
			return v
		}
		for _, f := range []func([]byte, *change.Value) ([]byte, error){Natural, JSON, DynamoJSON, Protobuf} {
			a, _ := f(nil, set(members))
			b, _ := f(nil, set(rapid.Permutation(members).Draw(t, "order")))
			if !bytes.Equal(a, b) {
				t.Fatalf("%q and %q", a, b)
			}
		}
	})
}

// parseOrderedNumber is the inverse of OrderedNumber.
func parseOrderedNumber(s string) (string, error) {
	bad := func() (string, error) { return "", fmt.Errorf("%.60q is not an ordered number", s) }
	if s == "1" {
		return "0", nil
	}
	if len(s) < 6 || (s[0] != '0' && s[0] != '2') {
		return bad()
	}
	sign, text := "", []byte(s[1:len(s)-1])
	if s[0] == '0' {
		sign = "-"
		for i, c := range text {
			text[i] = '9' - c + '0'
		}
	}
	exp, err := strconv.Atoi(string(text[:3]))
	if err != nil {
		return bad()
	}
	return change.CanonicalNumber(sign + "0." + string(text[3:]) + "E" + strconv.Itoa(exp-500))
}
