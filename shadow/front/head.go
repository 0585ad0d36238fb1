package front

import (
	"bytes"
	"strconv"
)

// head is the head of a request or an answer. Its parts alias the bytes that were parsed.
type head struct {
	method, target []byte // of a request
	minor          byte   // of its version: HTTP/1.0 or HTTP/1.1
	status         int    // of an answer

	fields  []field
	length  int64 // Content-Length; -1: none
	chunked bool
}

// field is a header field. line is all of it, with its end.
type field struct{ name, value, line []byte }

// parseRequest parses the head of a request. What a server may understand in two ways is
// errMalformed, because the front and the service must agree where a request ends.
//
// Source: RFC 9112, sections 2.2, 3, 5.1, 5.2 and 6.3.
func (h *head) parseRequest(b []byte) error {
	line, rest, _ := bytes.Cut(b, endOfLine)
	method, line, _ := bytes.Cut(line, []byte{' '})
	target, version, _ := bytes.Cut(line, []byte{' '})
	if !isToken(method) || len(target) == 0 || len(version) != len("HTTP/1.1") ||
		!bytes.HasPrefix(version, []byte("HTTP/1.")) || version[7] != '0' && version[7] != '1' {
		return errMalformed
	}
	for _, c := range target {
		if c <= ' ' || c >= 0x7f {
			return errMalformed
		}
	}
	h.method, h.target, h.minor = method, target, version[7]-'0'
	if err := h.parseFields(rest); err != nil {
		return err
	}
	if h.chunked && h.minor == 0 {
		return errMalformed // servers read no chunks in HTTP/1.0: they would take the body for requests
	}
	return nil
}

// parseAnswer parses the head of an answer.
func (h *head) parseAnswer(b []byte) error {
	line, rest, _ := bytes.Cut(b, endOfLine)
	const code = len("HTTP/1.1 ")
	if !bytes.HasPrefix(line, []byte("HTTP/1.")) || len(line) < code+3 || line[code-1] != ' ' {
		return errMalformed
	}
	status, err := strconv.Atoi(string(line[code : code+3]))
	if err != nil || status < 100 {
		return errMalformed
	}
	h.status = status
	return h.parseFields(rest)
}

var endOfLine = []byte("\r\n")

// parseFields parses the lines behind the first one, up to the empty line.
func (h *head) parseFields(b []byte) error {
	h.fields, h.length, h.chunked = h.fields[:0], -1, false
	for {
		end := bytes.Index(b, endOfLine)
		switch {
		case end < 0:
			return errMalformed
		case end == 0 && h.chunked && h.length >= 0:
			return errMalformed
		case end == 0:
			return nil
		}
		colon := bytes.IndexByte(b[:end], ':')
		if colon <= 0 || !isToken(b[:colon]) {
			return errMalformed // also of a line that continues the one before it
		}
		f := field{name: b[:colon], value: bytes.Trim(b[colon+1:end], " \t"), line: b[:end+len(endOfLine)]}
		if err := h.add(f); err != nil {
			return err
		}
		b = b[end+len(endOfLine):]
	}
}

// add adds a field, and takes from it where the body ends.
func (h *head) add(f field) error {
	for _, c := range f.value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return errMalformed
		}
	}
	h.fields = append(h.fields, f)
	switch {
	case f.is("content-length"):
		n, err := strconv.ParseUint(string(f.value), 10, 62)
		if err != nil || h.length >= 0 && h.length != int64(n) {
			return errMalformed
		}
		h.length = int64(n)
	case f.is("transfer-encoding"):
		if h.chunked || !bytes.EqualFold(f.value, []byte("chunked")) {
			return errMalformed
		}
		h.chunked = true
	}
	return nil
}

// is reports whether a field has a name, which is given in lower case.
func (f *field) is(name string) bool {
	return len(f.name) == len(name) && f.begins(name)
}

// begins reports whether a field's name begins with a prefix in lower case.
func (f *field) begins(prefix string) bool {
	if len(f.name) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		c := f.name[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != prefix[i] {
			return false
		}
	}
	return true
}

// get returns the value of a field, of the first one if there are several; nil: there is none. The
// name is given in lower case.
func (h *head) get(name string) []byte {
	for i := range h.fields {
		if h.fields[i].is(name) {
			return h.fields[i].value
		}
	}
	return nil
}

// text returns the value of a field, at most limit bytes of it.
func (h *head) text(name string, limit int) string {
	value := h.get(name)
	return string(value[:min(len(value), limit)])
}

// isToken reports whether a text is a token of RFC 9110.
func isToken(b []byte) bool {
	for _, c := range b {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), c) >= 0:
		default:
			return false
		}
	}
	return len(b) > 0
}
