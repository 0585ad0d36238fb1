package change

import (
	"bytes"
	"fmt"
	"strconv"
)

// ScanPage finds the records in the body of a GetRecords reply, and returns them in the memory of
// into. next is the raw NextShardIterator; nil if the reply has none, because the shard ends with
// these records.
//
// Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_GetRecords.html
func ScanPage(body []byte, into []Record) (recs []Record, next []byte, err error) {
	recs = into[:0]
	seen := false
	end := scanObject(body, 0, func(name []byte, v int) int {
		switch string(name) {
		case "NextShardIterator":
			e := skipValue(body, v)
			if e > 0 && body[v] == '"' {
				next = body[v+1 : e-1]
			}
			return e
		case "Records":
			seen = true
			return scanArray(body, v, func(v int) int {
				recs = append(recs, Record{})
				return recs[len(recs)-1].scan(body, v)
			})
		}
		return skipValue(body, v)
	})
	if end < 0 || skipSpace(body, end) != len(body) {
		return nil, nil, fmt.Errorf("scan page of %d bytes: %w", len(body), ErrMalformed)
	}
	if !seen {
		return nil, nil, fmt.Errorf("scan page: no Records: %w", ErrMalformed)
	}
	for i := range recs {
		if err := recs[i].check(); err != nil {
			return nil, nil, fmt.Errorf("scan page: record %d: %w", i, err)
		}
	}
	return recs, next, nil
}

// ScanRecord finds the parts of one record: a JSON object as it stands in a page.
func ScanRecord(raw []byte) (Record, error) {
	var r Record
	if end := r.scan(raw, 0); end < 0 || skipSpace(raw, end) != len(raw) {
		return Record{}, fmt.Errorf("scan record: %w", ErrMalformed)
	}
	return r, r.check()
}

// check returns an error if a required member is missing or cannot be read.
func (r *Record) check() error {
	switch {
	case len(r.SequenceNumber) == 0:
		return fmt.Errorf("no sequence number: %w", ErrMalformed)
	case r.Keys == nil:
		return fmt.Errorf("no keys: %w", ErrMalformed)
	case r.Op != Insert && r.Op != Modify && r.Op != Remove:
		return fmt.Errorf("unknown event name: %w", ErrMalformed)
	case r.Created < 0:
		// A wrong time would enter the clock, and the clock never goes back.
		return fmt.Errorf("unreadable creation time: %w", ErrMalformed)
	}
	return nil
}

// orAbsent returns nil for null: the SDK's decoder treats it as a missing member too.
func orAbsent(value []byte) []byte {
	if string(value) == "null" {
		return nil
	}
	return value
}

// scan finds the parts of the record at i and returns the index past it, or -1.
func (r *Record) scan(b []byte, i int) int {
	end := scanObject(b, i, func(name []byte, v int) int {
		if string(name) == "dynamodb" {
			return r.scanBody(b, v)
		}
		e := skipValue(b, v)
		if e < 0 {
			return -1
		}
		switch string(name) {
		case "userIdentity":
			r.TTL = isTTL(b[v:e])
		case "eventName":
			r.Op = opOf(b[v:e])
		case "eventID":
			r.EventID = unquoted(b[v:e])
		}
		return e
	})
	if end > 0 {
		r.Raw = b[i:end]
	}
	return end
}

// scanBody finds the parts of a record's member "dynamodb" and returns the index past it, or -1.
func (r *Record) scanBody(b []byte, i int) int {
	return scanObject(b, i, func(name []byte, v int) int {
		e := skipValue(b, v)
		if e < 0 {
			return -1
		}
		switch string(name) {
		case "Keys":
			r.Keys = orAbsent(b[v:e])
		case "NewImage":
			r.New = orAbsent(b[v:e])
		case "OldImage":
			r.Old = orAbsent(b[v:e])
		case "SequenceNumber":
			r.SequenceNumber = unquoted(b[v:e])
		case "ApproximateCreationDateTime":
			r.Created = millis(b[v:e])
		case "SizeBytes":
			r.Size, _ = digits(b[v:e])
		}
		return e
	})
}

func opOf(b []byte) Op {
	switch string(unquoted(b)) {
	case "INSERT":
		return Insert
	case "MODIFY":
		return Modify
	case "REMOVE":
		return Remove
	}
	return 0
}

var (
	ttlType      = []byte(`"Service"`)
	ttlPrincipal = []byte(`"dynamodb.amazonaws.com"`)
)

// isTTL reports whether an identity is the service itself, because TTL and not a user deleted the
// item. The members are read only as the API's model spells them, PrincipalId and Type, as the SDKs
// do. The spellings principalId and type in the developer guide belong to events for Lambda, which
// GetRecords never sends. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_Identity.html
func isTTL(identity []byte) bool {
	var service, dynamo bool
	scanObject(identity, 0, func(name []byte, v int) int {
		e := skipValue(identity, v)
		if e < 0 {
			return -1
		}
		switch string(name) {
		case "Type":
			service = bytes.Equal(identity[v:e], ttlType)
		case "PrincipalId":
			dynamo = bytes.Equal(identity[v:e], ttlPrincipal)
		}
		return e
	})
	return service && dynamo
}

func unquoted(b []byte) []byte {
	if len(b) >= 2 && b[0] == '"' {
		return b[1 : len(b)-1]
	}
	return nil
}

func digits(b []byte) (n int64, used int) {
	for used < len(b) && b[used] >= '0' && b[used] <= '9' && used < 18 {
		n = n*10 + int64(b[used]-'0')
		used++
	}
	return n, used
}

// maxCreated bounds creation times: the year 9999, in unix ms.
const maxCreated = 253_402_300_799_999

// millis reads epoch seconds, with or without a fraction or an exponent; -1 when b is not such a
// number.
func millis(b []byte) Millis {
	n, i := digits(b)
	if i == 0 || n > maxCreated/1000 {
		return -1
	}
	ms := Millis(n) * 1000
	if i < len(b) && b[i] == '.' {
		i++
		for scale := Millis(100); i < len(b) && b[i] >= '0' && b[i] <= '9'; scale /= 10 {
			ms += Millis(b[i]-'0') * scale
			i++
		}
	}
	if i < len(b) {
		return millisExp(b)
	}
	return ms
}

// millisExp reads 1.7E9, the form that some JSON writers choose for large floats.
func millisExp(b []byte) Millis {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || !(f >= 0 && f*1000 <= maxCreated) {
		return -1
	}
	return Millis(f * 1000)
}
