package source

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/source/raw"
)

// maxBatch is how many keys one BatchGetItem may have.
const maxBatch = 100

// itemBatchReply keeps account of items that are read by their keys with several calls of
// BatchGetItem.
type itemBatchReply struct {
	Items [][]byte // for each key its item in typed JSON; nil: there is no such item, or it is still open
	Units float64  // read capacity of all replies

	keys   *change.KeyReader
	open   []string         // canonical keys that are not answered yet, in the order of asking
	places map[string][]int // canonical key → its places in the caller's list
}

// newBatch returns a batch of keys in typed JSON. A key that occurs twice, be it in another
// notation, is asked for once.
func newBatch(keys [][]byte) (*itemBatchReply, error) {
	b := &itemBatchReply{places: make(map[string][]int, len(keys)), Items: make([][]byte, len(keys))}
	for i, key := range keys {
		if i == 0 {
			schema, err := schemaOf(key)
			if err != nil {
				return nil, err
			}
			b.keys = change.NewKeyReader(schema)
		}
		canonical, err := b.canonical(key)
		if err != nil {
			return nil, fmt.Errorf("read key: %w", err)
		}
		if b.places[canonical] == nil {
			b.open = append(b.open, canonical)
		}
		b.places[canonical] = append(b.places[canonical], i)
	}
	return b, nil
}

// schemaOf derives a key schema from a key. Its attributes are in the order of the key, which may
// differ from the table's; all keys of one batch are compared by the same schema.
func schemaOf(key []byte) (k change.KeySchema, err error) {
	var d change.Decoder
	img, err := d.Image(key)
	if err != nil {
		return k, fmt.Errorf("read key: %w", err)
	}
	if len(img) < 1 || len(img) > 2 {
		return k, fmt.Errorf("read key: %d attributes, not one or two", len(img))
	}
	attr := func(a change.Attr) change.KeyAttr {
		return change.KeyAttr{Name: a.Name, Type: a.Value.Kind.String()[0]}
	}
	k.Partition = attr(img[0])
	if len(img) == 2 {
		sort := attr(img[1])
		k.Sort = &sort
	}
	return k, nil
}

// canonical returns the canonical key of a key or of an item, so that 1.0 and 1 are the same.
func (b *itemBatchReply) canonical(item []byte) (string, error) {
	key, err := b.keys.Of(nil, item)
	return string(key), err
}

// Open returns how many keys are not answered yet.
func (b *itemBatchReply) Open() int { return len(b.open) }

// Next takes the keys of the next call from the open ones.
func (b *itemBatchReply) Next() (asked []string) {
	n := min(len(b.open), maxBatch)
	asked, b.open = b.open[:n:n], b.open[n:]
	return asked
}

// Take stores the items of a reply, in whatever order they come, and puts the unprocessed keys
// back. A key is absent only if the reply names it neither as an item nor as unprocessed, so a
// reply without either list is malformed.
func (b *itemBatchReply) Take(asked []string, body []byte) (left int, err error) {
	var responses, unprocessed []byte
	err = change.Members(body, func(name, value []byte) (err error) {
		switch string(name) {
		case "Responses":
			responses = value
		case "UnprocessedKeys":
			unprocessed = value
		case "ConsumedCapacity":
			var units float64
			units, err = unitsOf(value)
			b.Units += units
		}
		return err
	})
	unanswered := make(map[string]bool, len(asked))
	for _, key := range asked {
		unanswered[key] = true
	}
	if err == nil {
		err = b.takeItems(responses, unanswered)
	}
	if err == nil {
		left, err = b.putBack(unprocessed, unanswered)
	}
	if err != nil {
		return 0, &raw.MalformedError{Err: fmt.Errorf("batch reply of %d bytes: %w", len(body), err)}
	}
	return left, nil
}

// takeItems stores the items of Responses: {"Orders":[item, …]}.
func (b *itemBatchReply) takeItems(responses []byte, unanswered map[string]bool) error {
	answered := map[string][]byte{}
	return onlyTable("Responses", responses, func(list []byte) error {
		items, err := objects(list)
		for _, item := range items {
			key, err := b.canonical(item)
			if err != nil {
				return err
			}
			if !unanswered[key] && !bytes.Equal(answered[key], item) {
				return errors.New("an item was not asked for, or comes twice with different contents")
			}
			delete(unanswered, key)
			answered[key] = item
			for _, place := range b.places[key] {
				b.Items[place] = item
			}
		}
		return err
	})
}

// putBack puts the keys of UnprocessedKeys back among the open ones: {"Orders":{"Keys":[key, …]}}.
func (b *itemBatchReply) putBack(unprocessed []byte, unanswered map[string]bool) (left int, err error) {
	err = onlyTable("UnprocessedKeys", unprocessed, func(request []byte) error {
		return change.Members(request, func(name, list []byte) error {
			if string(name) != "Keys" {
				return nil
			}
			keys, err := objects(list)
			for _, k := range keys {
				key, err := b.canonical(k)
				if err != nil {
					return err
				}
				if !unanswered[key] {
					return errors.New("an unprocessed key was not asked for, or is answered")
				}
				delete(unanswered, key)
				b.open = append(b.open, key)
				left++
			}
			return err
		})
	})
	return left, err
}

// onlyTable calls f with the value of the only member of an object that is by table. The object may
// be empty, not missing. The member's name is not compared, because it may be the name or the ARN
// of the table that was asked for.
func onlyTable(what string, byTable []byte, f func(value []byte) error) error {
	if byTable == nil {
		return fmt.Errorf("no %s", what)
	}
	n := 0
	return change.Members(byTable, func(_, value []byte) error {
		if n++; n > 1 {
			return fmt.Errorf("%s has several tables", what)
		}
		return f(value)
	})
}
