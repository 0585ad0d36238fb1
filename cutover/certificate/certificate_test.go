package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func sample() *Certificate {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return &Certificate{
		Format: Format, ID: "f1", Pipeline: "shop", Target: "projects/p/instances/i/tables/products", Verdict: "equal",
		Program: Program{Version: "v1"}, Times: Times{QuietSince: at, Quiet: "1m0s", Fenced: at.Add(time.Minute)},
		Verify: Verify{How: "full", Verdict: "equal", Items: 1 << 60, Equal: 1 << 60},
		Tables: []Table{{
			Source: "Products", TableID: "id", MappingHash: "aa", Idle: Assumed, Fence: Fence{Entry: 7, Last: 6, At: at},
			Shards: []Shard{{ID: "shard-1", Position: "49<>&é", Through: at, Idle: Assumed}},
			Gaps:   []Gap{{ID: "g", Healed: map[string]string{"bigtable": ""}, Waived: map[string]string{"archive": "me"}}},
		}},
		Waivers: []Waiver{{Name: "foreign", Table: "Products", Count: 2, By: "me"}}, Says: []string{"all is well"},
	}
}

func keys(t *testing.T) (ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return public, private
}

func encode(t *testing.T, c *Certificate, key ed25519.PrivateKey) []byte {
	t.Helper()
	b, err := Encode(c, key)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCertificateIsReadAsItWasIssued(t *testing.T) {
	public, private := keys(t)
	for _, key := range []ed25519.PrivateKey{nil, private} {
		b := encode(t, sample(), key)
		var compact bytes.Buffer
		if err := json.Compact(&compact, b); err != nil {
			t.Fatal(err)
		}
		var reordered map[string]any
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		if err := d.Decode(&reordered); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(reordered)
		if err != nil {
			t.Fatal(err)
		}
		for name, file := range map[string][]byte{"as written": b, "compact": compact.Bytes(), "by jq": again} {
			trust := public
			if key == nil {
				trust = nil
			}
			checked, err := Check(file, trust)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			diff := cmp.Diff(sample(), checked.Certificate)
			if diff != "" || checked.Trusted != (key != nil) || !bytes.Contains(b, []byte(`"sha256": "`+checked.SHA256+`"`)) {
				t.Errorf("%s, trusted %v (-want +got):\n%s", name, checked.Trusted, diff)
			}
		}
	}
}

// TestAlteredCertificatesAreRefused changes the file as somebody would who wants it to say
// something else.
func TestAlteredCertificatesAreRefused(t *testing.T) {
	public, private := keys(t)
	_, other := keys(t)
	b := string(encode(t, sample(), private))
	replace := func(old, now string) []byte {
		t.Helper()
		if strings.Count(b, old) == 0 {
			t.Fatalf("the file has no %s", old)
		}
		return []byte(strings.Replace(b, old, now, 1))
	}
	rehashed := sample()
	rehashed.Verify.Different = 9
	forged := encode(t, rehashed, nil)
	var withOld file
	if err := json.Unmarshal(forged, &withOld); err != nil {
		t.Fatal(err)
	}
	var old file
	if err := json.Unmarshal([]byte(b), &old); err != nil {
		t.Fatal(err)
	}
	withOld.Signature = old.Signature
	moved, err := json.Marshal(withOld)
	if err != nil {
		t.Fatal(err)
	}
	const shop = `"pipeline": "shop"`
	const equal = `"verdict": "equal",
    "verify"`
	short, long := sample(), sample()
	short.ID, long.ID = "short", "long" // keys of another size are refused, and do not panic
	wrongKey := func(c *Certificate, bytes int) []byte {
		var f file
		if err := json.Unmarshal(encode(t, c, private), &f); err != nil {
			t.Fatal(err)
		}
		f.Signature.Key = base64.StdEncoding.EncodeToString(make([]byte, bytes))
		b, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	list := []byte(`{"schema":1,"certificate":[],"sha256":"` + hash([]byte("[]")) + `"}`)
	for name, c := range map[string]struct {
		file []byte
		want error
	}{
		"a count":                          {replace(`"refused": 0`, `"refused": 1`), ErrAltered},
		"a number spelled otherwise":       {replace(`"refused": 0`, `"refused": 0.0`), ErrAltered},
		"a name":                           {replace("shop", "shoq"), ErrAltered},
		"a removed member":                 {replace(`"pipeline": "shop",`, ""), ErrAltered},
		"a member more":                    {replace(`"pipeline"`, `"note": "fine", "pipeline"`), ErrAltered},
		"a member twice":                   {replace(equal, `"verdict": "different", `+equal), ErrAltered},
		"a member twice in capitals":       {replace(shop, shop+`, "Pipeline": "shop"`), ErrAltered},
		"the hash":                         {replace(`"sha256": "`, `"sha256": "0`), ErrAltered},
		"something behind it":              {[]byte(b + "{}"), ErrAltered},
		"the signature":                    {replace(`"value": "`, `"value": "AA`), ErrAltered},
		"new content, new hash":            {forged, ErrUnsigned},
		"new content, old signature":       {moved, ErrAltered},
		"new content, signed by another":   {encode(t, rehashed, other), ErrUnsigned},
		"the same content, not signed":     {encode(t, sample(), nil), ErrUnsigned},
		"a member twice outside":           {replace(`"schema": 1`, `"schema": 1, "schema": 1`), ErrAltered},
		"a member more outside":            {replace(`"schema": 1`, `"schema": 1, "x": 1`), nil},
		"cut":                              {[]byte(b[:len(b)/2]), errNoCertificate},
		"empty":                            {nil, errNoCertificate},
		"another file":                     {[]byte(`{"schema":1}`), errNoCertificate},
		"not JSON":                         {[]byte("pipeline: shop\n"), errNoCertificate},
		"another kind of signature":        {replace(`"ed25519"`, `"ed448"`), nil},
		"a list in place of a certificate": {list, nil},
		"a key too short":                  {wrongKey(short, 31), nil},
		"a key too long":                   {wrongKey(long, 33), nil},
		"another schema":                   {replace(`"schema": 1`, `"schema": 2`), nil},
	} {
		checked, err := Check(c.file, public)
		if err == nil || checked != nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := Check(forged, nil); err != nil {
		t.Errorf("without a key nobody can tell: %v", err)
	}
	for name, c := range map[string][2]string{ // what needs no key, also of a file that is not signed
		"a count": {`"refused": 0`, `"refused": 1`}, "a name": {"shop", "shoq"},
		"a removed member": {`"pipeline": "shop",`, ""},
		"the hash":         {`"sha256": "`, `"sha256": "0`}, "a member more": {`"pipeline"`, `"note": "fine", "pipeline"`},
		"a gap less": {`"reason": "",`, ""},
	} {
		for _, key := range []ed25519.PrivateKey{nil, private} {
			issued := string(encode(t, sample(), key))
			altered := strings.Replace(issued, c[0], c[1], 1)
			if _, err := Check([]byte(altered), nil); !errors.Is(err, ErrAltered) || altered == issued {
				t.Errorf("%s, signed %v, checked without a key: %v", name, key != nil, err)
			}
		}
	}
}

// TestCertificateOfAnEarlierBuildIsStillRead: it is checked like a new one, altered or not.
func TestCertificateOfAnEarlierBuildIsStillRead(t *testing.T) {
	b, err := os.ReadFile("testdata/format1.json")
	if err != nil {
		t.Fatal(err)
	}
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	want := sample()
	for _, key := range []ed25519.PublicKey{nil, private.Public().(ed25519.PublicKey)} {
		checked, err := Check(b, key)
		if err != nil {
			t.Fatal(err)
		}
		diff := cmp.Diff(want, checked.Certificate)
		if diff != "" || checked.Trusted != (key != nil) || checked.SignedBy == "" {
			t.Errorf("trusted %v (-want +got):\n%s", checked.Trusted, diff)
		}
		for _, as := range []string{`"format": 2`, `"format": 01`, `"format": 1, "changed": null`} {
			altered := bytes.Replace(b, []byte(`"format": 1`), []byte(as), 1)
			if _, err := Check(altered, key); err == nil || bytes.Equal(altered, b) {
				t.Errorf("%s: %v", as, err)
			}
		}
	}
	public, _ := keys(t)
	if _, err := Check(b, public); !errors.Is(err, ErrUnsigned) {
		t.Errorf("with another key: %v", err)
	}
}

// TestNewerCertificateIsRefused: Rule 11.
func TestNewerCertificateIsRefused(t *testing.T) {
	for _, format := range []int{0, -1, Format + 1} {
		c := sample()
		c.Format = format
		if _, err := Check(encode(t, c, nil), nil); err == nil || !strings.Contains(err.Error(), "format") {
			t.Errorf("format %d: %v", format, err)
		}
	}
}

func TestKeysOfOpenSSL(t *testing.T) {
	public, private := keys(t)
	dir := t.TempDir()
	write := func(name, kind string, der []byte, err error) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err == nil {
			err = os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	key := write("key", "PRIVATE KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(public)
	pub := write("pub", "PUBLIC KEY", der, err)
	if got, err := ReadKey(key); err != nil || !got.Equal(private) {
		t.Errorf("private key: %v", err)
	}
	if got, err := ReadPublicKey(pub); err != nil || !got.Equal(public) {
		t.Errorf("public key: %v", err)
	}
	if _, err := ReadKey(pub); err == nil {
		t.Error("a public key was taken for a private one")
	}
	if _, err := ReadPublicKey(key); err == nil {
		t.Error("a private key was taken for a public one")
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err = x509.MarshalPKCS8PrivateKey(other)
	if _, err := ReadKey(write("other", "PRIVATE KEY", der, err)); err == nil ||
		!strings.Contains(err.Error(), "Ed25519") {
		t.Errorf("another kind of private key: %v", err)
	}
	der, err = x509.MarshalPKIXPublicKey(&other.PublicKey)
	if _, err := ReadPublicKey(write("otherpub", "PUBLIC KEY", der, err)); err == nil ||
		!strings.Contains(err.Error(), "Ed25519") {
		t.Errorf("another kind of public key: %v", err)
	}
	swapped := write("swapped", "PRIVATE KEY", der, nil)
	if _, err := ReadPublicKey(swapped); err == nil || !strings.Contains(err.Error(), "holds a PRIVATE KEY") {
		t.Errorf("a private key as the public one: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "text"), []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKey(filepath.Join(dir, "text")); !errors.Is(err, errNoPEM) {
		t.Errorf("no PEM: %v", err)
	}
	if _, err := ReadKey(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// FuzzCheck: what is taken must be encoded the same again.
func FuzzCheck(f *testing.F) {
	b, err := Encode(sample(), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Check(b, nil)
		if err != nil {
			return
		}
		again, err := Encode(c.Certificate, nil)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := Check(again, nil); err != nil || !cmp.Equal(c.Certificate, same.Certificate) {
			t.Errorf("%v, %v", same, err)
		}
	})
}

func TestSumSaysWhichComparisonItCounts(t *testing.T) {
	for want, v := range map[string]Verify{
		"1 item is equal":     {Equal: 1},
		"249 items are equal": {Equal: 249},
		"249 items were equal in the full comparison, and the 300 items that have changed since are equal": {
			Equal: 249, Changed: &Changed{Items: 300}},
		"1 item was equal in the full comparison, and the 1 item that has changed since is equal": {
			Equal: 1, Changed: &Changed{Items: 1}},
		"2 items were equal in the full comparison, and none has changed since": {Equal: 2, Changed: &Changed{}},
	} {
		if got := v.Sum(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
