package source

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/source/raw"
)

// replyPage is what a reply to Scan holds. It aliases the reply.
type replyPage struct {
	Items [][]byte // in typed JSON
	After string   // key that the next page begins after, in typed JSON; "": there is none
	Units float64  // read capacity that the page cost
}

// scanReply finds the items and the other members of a reply to Scan.
//
// A reply without its list of items, or with a number of items that differs from its count, must
// not be taken for the end of the table: it may come from a proxy.
func scanReply(body []byte) (*replyPage, error) {
	p := &replyPage{}
	seen, count := false, -1
	err := change.Members(body, func(name, value []byte) (err error) {
		switch string(name) {
		case "Items":
			seen = true
			p.Items, err = objects(value)
		case "LastEvaluatedKey":
			if string(value) != "null" {
				p.After = string(value)
			}
		case "Count":
			err = json.Unmarshal(value, &count)
		case "ConsumedCapacity":
			p.Units, err = unitsOf(value)
		}
		return err
	})
	switch {
	case err != nil:
	case !seen:
		err = errors.New("no Items")
	case count >= 0 && count != len(p.Items):
		err = fmt.Errorf("%d items, not the %d that the reply counts", len(p.Items), count)
	case p.After != "":
		_, err = itemKey([]byte(p.After))
	}
	if err != nil {
		return nil, &raw.MalformedError{Err: fmt.Errorf("scan reply of %d bytes: %w", len(body), err)}
	}
	return p, nil
}

// objects returns the elements of an array of objects.
func objects(array []byte) (all [][]byte, err error) {
	err = change.Elements(array, func(value []byte) error {
		if value[0] != '{' {
			return errors.New("an item is not an object")
		}
		all = append(all, value)
		return nil
	})
	return all, err
}

// unitsOf returns the capacity units of a ConsumedCapacity: an object, or in the reply to a batch a
// list of them.
func unitsOf(consumed []byte) (units float64, err error) {
	type capacity struct{ CapacityUnits float64 }
	if consumed[0] != '[' {
		var one capacity
		err = json.Unmarshal(consumed, &one)
		return one.CapacityUnits, err
	}
	var all []capacity
	err = json.Unmarshal(consumed, &all)
	for _, c := range all {
		units += c.CapacityUnits
	}
	return units, err
}
