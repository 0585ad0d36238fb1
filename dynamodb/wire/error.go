package wire

import (
	"fmt"
	"net/http"
	"strconv"
)

// Error is an error reply of the service. Code is its short name, Message the service's text, Extra
// further JSON fields, each of which begins with a comma.
type Error struct {
	Code    string
	Message string
	Extra   string
	Whole   bool // of one action of a transaction: it refuses the request, and is no reason to cancel it
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Status returns the HTTP status of the reply.
func (e *Error) Status() int {
	switch e.Code {
	case "InternalServerError", "InternalFailure":
		return http.StatusInternalServerError
	case "ServiceUnavailable":
		return http.StatusServiceUnavailable
	case "RequestEntityTooLarge":
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

// JSON returns the body of the reply.
func (e *Error) JSON() []byte {
	prefix, field := "com.amazonaws.dynamodb.v20120810#", "message"
	switch e.Code {
	case "ValidationException":
		prefix = "com.amazon.coral.validate#"
	case "SerializationException":
		prefix, field = "com.amazon.coral.service#", "Message"
	case "UnknownOperationException", "MissingAuthenticationTokenException", "IncompleteSignatureException",
		"InvalidSignatureException", "UnrecognizedClientException", "AccessDeniedException", "ThrottlingException",
		"ExpiredTokenException":
		prefix = "com.amazon.coral.service#"
	case "TransactionCanceledException":
		field = "Message"
	}
	b := append([]byte(`{"__type":"`), prefix...)
	b = append(b, e.Code...)
	b = append(b, '"')
	if e.Message != "" || e.Code != "UnknownOperationException" {
		b = append(b, ',')
		b = AppendString(b, field)
		b = append(b, ':')
		b = AppendString(b, e.Message)
	}
	b = append(b, e.Extra...)
	return append(b, '}')
}

// Invalid returns a ValidationException. Without args, format is the message as it is.
func Invalid(format string, args ...any) *Error {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	return &Error{Code: "ValidationException", Message: format}
}

// BadValue returns the ValidationException of most checks of values.
func BadValue(format string, args ...any) *Error {
	return Invalid("One or more parameter values were invalid: "+format, args...)
}

// Unreadable returns a SerializationException: the request's JSON has the wrong types.
func Unreadable(message string) *Error {
	return &Error{Code: "SerializationException", Message: message}
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}

// AppendField appends `"name":` to an object, after a comma unless it is the first field. name
// needs no escaping.
func AppendField(b []byte, name string) []byte {
	if len(b) > 0 && b[len(b)-1] != '{' && b[len(b)-1] != '[' {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

// AppendText appends a field with a string value.
func AppendText(b []byte, name, value string) []byte {
	return AppendString(AppendField(b, name), value)
}

// AppendInt appends a field with an integer value.
func AppendInt(b []byte, name string, v int64) []byte {
	return strconv.AppendInt(AppendField(b, name), v, 10)
}

// AppendFloat appends a field with a number.
func AppendFloat(b []byte, name string, v float64) []byte {
	return strconv.AppendFloat(AppendField(b, name), v, 'f', -1, 64)
}

// AppendBool appends a field with a boolean.
func AppendBool(b []byte, name string, v bool) []byte {
	return strconv.AppendBool(AppendField(b, name), v)
}

// AppendNode appends a node as JSON.
func AppendNode(b []byte, n *Node) []byte {
	switch n.Kind {
	case String:
		return AppendString(b, n.Text)
	case Object, Array:
		open, end := byte('{'), byte('}')
		if n.Kind == Array {
			open, end = '[', ']'
		}
		b = append(b, open)
		for i := range n.Kids {
			if i > 0 {
				b = append(b, ',')
			}
			if n.Kind == Object {
				b = append(AppendString(b, n.Kids[i].Name), ':')
			}
			b = AppendNode(b, &n.Kids[i])
		}
		return append(b, end)
	case Null, Absent:
		return append(b, "null"...)
	}
	return append(b, n.Text...)
}
