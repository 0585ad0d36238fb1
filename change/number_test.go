package change

import (
	"math/big"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNumbersInOneForm(t *testing.T) {
	nines := strings.Repeat("9", 38)
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "+0": "0", "0.000": "0", "-0E5": "0", "0e99999": "0",
		"1": "1", "01": "1", "+1": "1", "1.0": "1", "1.50": "1.5", ".5": "0.5", "5.": "5", "-1e0": "-1",
		"1e2": "100", "1E+2": "100", "100E-2": "1", "12.34e1": "123.4", "0.001": "0.001", "-0.0010": "-0.001",
		"1e40": "1" + strings.Repeat("0", 40), "1e41": "1E+41", "1e-40": "0." + strings.Repeat("0", 39) + "1",
		"1e-41":  "1E-41",
		"12e-42": "1.2E-41", nines: nines, "-" + nines + "000": "-" + nines + "000", "9.9e125": "9.9E+125",
		"1e-130": "1E-130",
		"00000000000000000000000000000000000000000000000001": "1",
	} {
		if got, err := CanonicalNumber(in); got != want || err != nil {
			t.Errorf("%s is %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "-", "+", ".", "e5", ".e5", "1e", "1e+", "1.2.3", "1,5", "0x1", "1_000", "1e1_0", "NaN", "Infinity", " 1", "1 ",
		"--1", "+-1", "٣",
		nines + "9", "1e126", "1e-131", "1." + nines, "1e999999999999999999999",
	} {
		if got, err := CanonicalNumber(in); err == nil {
			t.Errorf("%q is taken for the number %s", in, got)
		}
	}
}

var numberForm = regexp.MustCompile(`^([-+]?)([0-9]*)\.?([0-9]*)(?:[eE]([-+]?[0-9]+))?$`)

// FuzzCanonicalNumber holds it to math/big: same value, one form per value, and the form says the
// range.
func FuzzCanonicalNumber(f *testing.F) {
	for i := range 40 {
		f.Add(genNumber().Example(i), genNumber().Example(i+1000))
	}
	f.Add("1e40", "10E39")
	f.Fuzz(func(t *testing.T, a, b string) {
		ca, erra := CanonicalNumber(a)
		m := numberForm.FindStringSubmatch(a)
		isNumber := m != nil && m[2]+m[3] != ""
		if erra == nil && !isNumber {
			t.Fatalf("%q is taken for the number %s", a, ca)
		}
		if !isNumber || len(m[4]) > 5 || len(a) > 2000 {
			return
		}
		ra, _ := new(big.Rat).SetString(a)
		if ok := inRange(ra); ok != (erra == nil) {
			t.Fatalf("%s: %v, but in range: %t", a, erra, ok)
		}
		if erra != nil {
			return
		}
		if rc, _ := new(big.Rat).SetString(ca); rc.Cmp(ra) != 0 {
			t.Fatalf("%s became %s", a, ca)
		}
		if again, err := CanonicalNumber(ca); again != ca || err != nil {
			t.Fatalf("%s became %s, then %s (%v)", a, ca, again, err)
		}
		if cb, err := CanonicalNumber(b); err == nil {
			if rb, _ := new(big.Rat).SetString(b); (rb.Cmp(ra) == 0) != (ca == cb) {
				t.Fatalf("%s and %s became %s and %s", a, b, ca, cb)
			}
		}
	})
}

// inRange says whether the service stores x: 38 significant digits, 1E-130 to 9.99…E+125.
func inRange(x *big.Rat) bool {
	if x.Sign() == 0 {
		return true
	}
	abs := new(big.Rat).Abs(x)
	pow := func(e int64) *big.Rat {
		return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(e), nil))
	}
	if abs.Cmp(pow(126)) >= 0 || abs.Cmp(new(big.Rat).Inv(pow(130))) < 0 {
		return false
	}
	whole := new(big.Rat).Mul(abs, pow(170)) // all digits before the point now, or there are too many
	if !whole.IsInt() {
		return false
	}
	return len(strings.TrimRight(whole.Num().String(), "0")) <= 38
}

func TestEqualNumbersHaveEqualBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := genNumber().Draw(t, "a")
		want, err := CanonicalNumber(a)
		if err != nil {
			t.Skip("out of range")
		}
		x, _ := new(big.Rat).SetString(a)
		other := x.FloatString(170)
		if got, err := CanonicalNumber(other); got != want || err != nil {
			t.Fatalf("%s is %s, but %s is %s (%v)", a, want, other, got, err)
		}
	})
}
