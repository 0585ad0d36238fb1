package certificate

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrAltered means that the content of a certificate is not what was issued.
var ErrAltered = errors.New("the certificate was altered")

// ErrUnsigned means that a key was given, and the certificate is not signed with it.
var ErrUnsigned = errors.New("the certificate is not signed with this key")

// errNoCertificate means that a file is something else, or was cut off.
var errNoCertificate = errors.New("this is not a whole certificate")

// domain begins the message that is signed, so that the key signs nothing that could be taken for
// something else.
const domain = "tailrace cutover certificate 1\n"

// file is a certificate as it is stored.
type file struct {
	Schema      int             `json:"schema"`
	Certificate json.RawMessage `json:"certificate"`
	SHA256      string          `json:"sha256"` // of the canonical form of Certificate
	Signature   *signature      `json:"signature,omitempty"`
}

// signature is one over domain and the canonical form.
type signature struct {
	Algorithm string `json:"algorithm"` // ed25519
	Key       string `json:"key"`       // the public key, base64
	Value     string `json:"value"`     // base64
}

// Encode returns the file of a certificate, indented for people. key signs it; nil: it has only its
// hash.
func Encode(c *Certificate, key ed25519.PrivateKey) ([]byte, error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode certificate: %w", err)
	}
	content, err := canonical(raw)
	if err != nil {
		return nil, fmt.Errorf("encode certificate: %w", err)
	}
	f := file{Schema: 1, Certificate: content, SHA256: hash(content)}
	if key != nil {
		f.Signature = &signature{
			Algorithm: "ed25519", Key: base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey)),
			Value: base64.StdEncoding.EncodeToString(ed25519.Sign(key, message(content))),
		}
	}
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode certificate: %w", err)
	}
	return append(b, '\n'), nil
}

// Checked is a certificate that is as it was issued.
type Checked struct {
	Certificate *Certificate
	SHA256      string
	// SignedBy is the public key of the signature, base64; empty without one. It proves the issuer
	// only if the owner of that key is known: Trusted, by the key given to Check.
	SignedBy string
	Trusted  bool
}

// Check decodes a file. It may be reformatted; any other change is refused. Without a key only
// damage is found: a forger of a certificate can write its new hash, too. With a key the
// certificate must be signed with it. Errors: ErrAltered, ErrUnsigned, an error for a format of a
// newer build, and one for another file or a part of one.
func Check(b []byte, key ed25519.PublicKey) (*Checked, error) {
	if err := checkMembers(b); errors.Is(err, ErrAltered) {
		return nil, fmt.Errorf("read certificate: %w", err)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoCertificate, err)
	}
	var f file
	if err := decodeStrictly(b, &f); errors.Is(err, ErrAltered) {
		return nil, fmt.Errorf("read certificate: %w", err)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoCertificate, err)
	}
	if len(f.Certificate) == 0 {
		return nil, errNoCertificate
	}
	if f.Schema != 1 {
		return nil, fmt.Errorf("read certificate: it has schema %d, and this build reads 1", f.Schema)
	}
	content, err := canonical(f.Certificate)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	sum := hash(content)
	if sum != f.SHA256 {
		return nil, fmt.Errorf("%w: its SHA-256 is %s, it says %q", ErrAltered, sum, f.SHA256)
	}
	out := &Checked{SHA256: sum}
	if err := out.checkSignature(f.Signature, content, key); err != nil {
		return nil, err
	}
	if err := out.decode(content); err != nil {
		return nil, err
	}
	return out, nil
}

// checkSignature compares the signature with the content, and its key with the one that is trusted.
func (c *Checked) checkSignature(s *signature, content []byte, key ed25519.PublicKey) error {
	if s == nil {
		if key != nil {
			return fmt.Errorf("%w: it has no signature", ErrUnsigned)
		}
		return nil
	}
	public, keyErr := base64.StdEncoding.DecodeString(s.Key)
	value, valueErr := base64.StdEncoding.DecodeString(s.Value)
	switch {
	case s.Algorithm != "ed25519" || len(public) != ed25519.PublicKeySize:
		return errors.New("read certificate: its signature is of a kind that this build does not know")
	case keyErr != nil || valueErr != nil || !ed25519.Verify(public, message(content), value):
		return fmt.Errorf("%w: its signature is not one of its content", ErrAltered)
	case key != nil && !key.Equal(ed25519.PublicKey(public)):
		return fmt.Errorf("%w: it is signed with %s", ErrUnsigned, s.Key)
	}
	c.SignedBy, c.Trusted = s.Key, key != nil
	return nil
}

// decode reads the content. Rule 11: a newer format is refused, not guessed at.
func (c *Checked) decode(content []byte) error {
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(content, &version); err != nil {
		return fmt.Errorf("read certificate: %w", err)
	}
	if version.Format < 1 || version.Format > Format {
		return fmt.Errorf("read certificate: it has format %d, this build reads up to %d: use the build that issued it",
			version.Format, Format)
	}
	c.Certificate = &Certificate{}
	if err := decodeStrictly(content, c.Certificate); err != nil {
		return fmt.Errorf("read certificate: %w", err)
	}
	return nil
}

// canonical returns JSON without spaces, with the members of each object sorted, numbers as they
// are spelled, and no character escaped that JSON does not require.
func canonical(raw []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func message(content []byte) []byte { return append([]byte(domain), content...) }

// decodeStrictly decodes exactly one value, without unknown members.
func decodeStrictly(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows it", ErrAltered)
	}
	return nil
}

// checkMembers refuses an object with two members of one name: a program reads the last of them,
// and a person the first. Names that differ only in case count as one, because package json takes
// either.
func checkMembers(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := checkValue(d); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func checkValue(d *json.Decoder) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	open, ok := t.(json.Delim)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for d.More() {
		if open == '{' {
			name, err := d.Token()
			if err != nil {
				return err
			}
			key := strings.ToLower(name.(string))
			if seen[key] {
				return fmt.Errorf("%w: it has the member %q twice", ErrAltered, name)
			}
			seen[key] = true
		}
		if err := checkValue(d); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}
