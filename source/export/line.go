package export

import (
	"errors"
	"strconv"

	"github.com/tailrace-cdc/replicator/change"
)

// Line is one line of a data file. Its bytes are valid only during the call that hands it out.
type Line struct {
	N int64 // counted from 1 in each file

	// Item is an item of a full export, in DynamoDB's typed JSON.
	Item []byte

	// Keys are the keys of an item that changed in the window of an incremental export. Old is the
	// item before the window and New the one at its end; nil: there was none. What happened in
	// between is not in the export.
	Keys, Old, New []byte

	// Written is when the item was last written within the window, in microseconds; 0 in a full
	// export.
	Written int64
}

var errLine = errors.New("the line is not that of an export: no Item, or no Keys")

// parseLine finds the parts of a line without decoding the items.
//
//	{"Item":{…}}
//	{"Metadata":{"WriteTimestampMicros":{"N":"…"}},"Keys":{…},"OldImage":{…},"NewImage":{…}}
func parseLine(text []byte, kind string) (l Line, err error) {
	err = change.Members(text, func(name, value []byte) (err error) {
		switch string(name) {
		case "Item":
			l.Item, err = object(value)
		case "Keys":
			l.Keys, err = object(value)
		case "OldImage":
			l.Old, err = object(value)
		case "NewImage":
			l.New, err = object(value)
		case "Metadata":
			l.Written, err = written(value)
		}
		return err
	})
	if err == nil && (kind == Full) == (l.Item == nil) || kind == Incremental && l.Keys == nil {
		return Line{}, errLine
	}
	return l, err
}

func object(value []byte) ([]byte, error) {
	if value[0] != '{' {
		return nil, errLine
	}
	return value, nil
}

// written returns the WriteTimestampMicros of a line's Metadata. DynamoDB writes {"N":"…"}; its guide
// shows the text alone, which is taken too. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/S3DataExport.Output.html
func written(metadata []byte) (micros int64, err error) {
	err = change.Members(metadata, func(name, value []byte) error {
		if string(name) != "WriteTimestampMicros" {
			return nil
		}
		if value[0] == '"' {
			micros, err = number(value)
			return err
		}
		return change.Members(value, func(kind, text []byte) (err error) {
			if string(kind) != "N" {
				return errNumber
			}
			micros, err = number(text)
			return err
		})
	})
	return micros, err
}

var errNumber = errors.New("WriteTimestampMicros is not a number")

// number returns the number in a JSON string.
func number(text []byte) (int64, error) {
	if len(text) < 2 || text[0] != '"' {
		return 0, errNumber
	}
	return strconv.ParseInt(string(text[1:len(text)-1]), 10, 64)
}
