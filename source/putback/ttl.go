package putback

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// TTL is what a restore does to the attribute by which an item expires: an item that has expired
// would be deleted again. The zero TTL means that the user has not chosen.
type TTL struct {
	Mode  Mode
	After time.Duration // of Later
}

// Mode is what is done with the attribute.
type Mode uint8

// The modes.
const (
	Unchosen Mode = iota
	Keep          // the item is restored as it was
	Remove        // the item has the attribute no more
	Later         // the item expires a given time after the restore
)

// ParseTTL reads keep, remove, or a time such as +30d and +12h; "" is no choice.
func ParseTTL(text string) (TTL, error) {
	switch text {
	case "":
		return TTL{}, nil
	case "keep":
		return TTL{Mode: Keep}, nil
	case "remove":
		return TTL{Mode: Remove}, nil
	}
	after, ok := strings.CutPrefix(text, "+")
	if days, whole := strings.CutSuffix(after, "d"); ok && whole {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil && n > 0 {
			return TTL{Later, time.Duration(n) * 24 * time.Hour}, nil
		}
	} else if d, err := time.ParseDuration(after); ok && err == nil && d >= time.Second {
		return TTL{Later, d}, nil
	}
	return TTL{}, fmt.Errorf("%q is neither remove, nor keep, nor a time such as +30d or +12h", text)
}

// Apply returns an item with its attribute attr changed by the mode. An item never expires if it
// lacks the attribute or the attribute is not a number; it stays as it is, as does every item if
// attr is "".
func (t TTL) Apply(item []byte, attr string, now time.Time) ([]byte, error) {
	if attr == "" || t.Mode == Keep || t.Mode == Unchosen {
		return item, nil
	}
	if _, ok := expiry(item, attr); !ok {
		return item, nil
	}
	out := make([]byte, 0, len(item)+16)
	out = append(out, '{')
	err := change.Members(item, func(raw, value []byte) error {
		name, err := unquote(raw)
		if err != nil {
			return err
		}
		if name == attr {
			if t.Mode == Remove {
				return nil
			}
			value = fmt.Appendf(nil, `{"N":"%d"}`, now.Add(t.After).Unix())
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(change.AppendString(out, name), ':')
		out = append(out, value...)
		return nil
	})
	return append(out, '}'), err
}

// unquote returns the name of a member without the escapes that change.Members leaves in it.
func unquote(raw []byte) (name string, err error) {
	quoted := append(append([]byte{'"'}, raw...), '"')
	if err := json.Unmarshal(quoted, &name); err != nil {
		return "", errors.New("an attribute's name is not JSON")
	}
	return name, nil
}

// longAgo is how long an item must be over to be left alone by DynamoDB.
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/howitworks-ttl.html
const longAgo = 5 * 365 * 24 * time.Hour

// Expires reports whether DynamoDB would delete an item with time to live on attr at once.
func Expires(item []byte, attr string, now time.Time) bool {
	at, ok := expiry(item, attr)
	return ok && at.Cmp(seconds(now)) <= 0 && at.Cmp(seconds(now.Add(-longAgo))) > 0
}

func seconds(at time.Time) *big.Rat { return new(big.Rat).SetInt64(at.Unix()) }

// expiry returns the number in the attribute attr; false where there is none.
func expiry(item []byte, attr string) (*big.Rat, bool) {
	if attr == "" {
		return nil, false
	}
	var d change.Decoder
	image, err := d.PartialImage(item, func(name string) bool { return name == attr })
	if err != nil {
		return nil, false
	}
	v := image.Get(attr)
	if v == nil || v.Kind != change.KindNumber {
		return nil, false
	}
	return new(big.Rat).SetString(v.S)
}
