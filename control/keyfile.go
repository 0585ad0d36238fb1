package control

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/tailrace-cdc/replicator/change"
)

// maxLine is the longest line: an item with its attributes fits.
const maxLine = 4 << 20

// LineError names the number of a line that is not a key. It never contains the line: keys may be
// personal data.
type LineError struct {
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong with the line.
func (e *LineError) Unwrap() error { return e.Err }

// ReadKeys yields the canonical key of every line, in the order of the lines and as often as it is
// written; empty lines are skipped. A line is an object with the key attributes, plain as in
// {"pk":"hats","n":12} or typed as in {"pk":{"S":"hats"},"n":{"N":"12"}}; other attributes in it
// are ignored, so a line may be a whole item. After an error, a *LineError or one of in, it yields
// nothing more. A yielded key is valid until the next one.
func ReadKeys(in io.Reader, schema change.KeySchema) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, maxLine)
		var key []byte
		for n := 1; lines.Scan(); n++ {
			line := bytes.TrimSpace(lines.Bytes())
			if n == 1 {
				line = bytes.TrimPrefix(line, []byte("\ufeff")) // editors on Windows begin a file with it
			}
			if len(line) == 0 {
				continue
			}
			var err error
			if key, err = appendKey(key[:0], line, schema); err != nil {
				yield(nil, &LineError{n, err})
				return
			}
			if !yield(key, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, fmt.Errorf("read keys: %w", err))
		}
	}
}

// ParseKey returns the canonical key of one object, in either notation.
func ParseKey(object []byte, schema change.KeySchema) ([]byte, error) {
	return appendKey(nil, object, schema)
}

// appendKey appends the canonical key of one object.
func appendKey(dst, line []byte, schema change.KeySchema) ([]byte, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(line, &members) != nil || members == nil {
		return dst, errors.New(`it is not a JSON object: write {"pk":"hats"}`)
	}
	attrs := []change.KeyAttr{schema.Partition}
	if schema.Sort != nil {
		attrs = append(attrs, *schema.Sort)
	}
	typed := map[string]json.RawMessage{}
	for _, a := range attrs {
		value, err := typedValue(members[a.Name], a)
		if err != nil {
			return dst, err
		}
		typed[a.Name] = value
	}
	text, err := json.Marshal(typed)
	if err != nil {
		return dst, fmt.Errorf("write typed key: %w", err)
	}
	var d change.Decoder
	img, err := d.Image(text)
	if err != nil {
		return dst, fmt.Errorf("its key attributes are not in DynamoDB's notation: %w", err)
	}
	for i := range img {
		if err := checkValue(&img[i].Value); err != nil {
			return dst, fmt.Errorf("key attribute %q: %w", img[i].Name, err)
		}
	}
	return schema.Canonical(dst, img)
}

// typedValue returns a key attribute in the typed notation. A plain value gets the type that the
// table's key has: text for S, a number or its text for N, base64 for B.
func typedValue(value json.RawMessage, a change.KeyAttr) (json.RawMessage, error) {
	value = bytes.TrimSpace(value)
	switch {
	case len(value) == 0:
		return nil, fmt.Errorf("key attribute %q is missing", a.Name)
	case value[0] == '{':
		return value, nil
	case a.Type == 'N' && value[0] != '"':
		var n json.Number
		if json.Unmarshal(value, &n) != nil {
			break
		}
		return fmt.Appendf(nil, `{"N":%q}`, n), nil
	case value[0] == '"':
		return fmt.Appendf(nil, `{"%c":%s}`, a.Type, value), nil
	}
	return nil, fmt.Errorf("key attribute %q must be of type %c", a.Name, a.Type)
}

// checkValue refuses a value that no item's key can have.
func checkValue(v *change.Value) error {
	switch v.Kind.String() {
	case "N":
		_, err := change.CanonicalNumber(v.S)
		return err
	case "B":
		_, err := base64.StdEncoding.DecodeString(v.S)
		return err
	}
	return nil
}
