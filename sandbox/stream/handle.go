package stream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// serviceError is an error as the service words it.
type serviceError struct {
	status  int
	code    string
	message string
}

func (f *serviceError) Error() string { return f.code + ": " + f.message }

func invalid(format string, args ...any) *serviceError {
	return &serviceError{http.StatusBadRequest, "ValidationException", fmt.Sprintf(format, args...)}
}

func refused(code, format string, args ...any) *serviceError {
	return &serviceError{http.StatusBadRequest, code, fmt.Sprintf(format, args...)}
}

// notFound is the answer to an ARN or shard that is not there (any more).
func notFound(format string, args ...any) *serviceError {
	return refused("ResourceNotFoundException", "Requested resource not found: "+format, args...)
}

// Handle answers one operation of the streams API (ListStreams, DescribeStream,
// GetShardIterator, GetRecords): body and reply are awsJson 1.0. The reply belongs to
// the caller, who may hand it back with Release when it has been written.
func (e *Engine) Handle(op string, body []byte) (status int, reply []byte) {
	var f *serviceError
	switch op {
	case "ListStreams":
		reply, f = answer(body, e.listStreams)
	case "DescribeStream":
		reply, f = answer(body, e.describeStream)
	case "GetShardIterator":
		reply, f = answer(body, e.getShardIterator)
	case "GetRecords":
		reply, f = e.getRecords(body)
	default:
		f = refused("UnknownOperationException", "")
	}
	if f != nil {
		return f.status, ErrorReply(f.code, f.message)
	}
	return http.StatusOK, reply
}

// ErrorReply is the body of an error answer with this code.
func ErrorReply(code, message string) []byte {
	space := "com.amazonaws.dynamodb.v20120810#"
	switch code {
	case "ValidationException":
		space = "com.amazon.coral.validate#"
	case "ThrottlingException":
		space = "com.amazon.coral.availability#"
	case "UnknownOperationException", "SerializationException", "ExpiredTokenException", "UnrecognizedClientException":
		space = "com.amazon.coral.service#"
	}
	reply, err := json.Marshal(map[string]string{"__type": space + code, "message": message})
	if err != nil { // strings always encode
		panic(err)
	}
	return reply
}

func answer[In, Out any](body []byte, f func(*In) (*Out, *serviceError)) ([]byte, *serviceError) {
	var in In
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, refused("SerializationException", "%v", err)
	}
	out, problem := f(&in)
	if problem != nil {
		return nil, problem
	}
	reply, err := json.Marshal(out)
	if err != nil {
		return nil, &serviceError{http.StatusInternalServerError, "InternalServerError", err.Error()}
	}
	return reply, nil
}

// constraint is the service's wording for a value outside its bounds.
func constraint(value any, field, bound string) *serviceError {
	return invalid("1 validation error detected: Value '%v' at '%s' failed to satisfy constraint: Member must %s", value, field, bound)
}

// checkARN checks the form of a stream's ARN in a field of the request.
func checkARN(field, arn string) *serviceError {
	switch {
	case arn == "":
		return invalid("1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", field)
	case len(arn) < 37:
		return constraint(arn, field, "have length greater than or equal to 37")
	case len(arn) > 1024:
		return constraint(arn, field, "have length less than or equal to 1024")
	case !strings.HasPrefix(arn, "arn:") || !strings.Contains(arn, ":table/") || !strings.Contains(arn, "/stream/"):
		return invalid("Invalid %s: %s", strings.ToUpper(field[:1])+field[1:], arn)
	}
	return nil
}

// find returns the stream of an ARN. The caller holds the engine's lock.
func (e *Engine) find(arn string) (*stream, *serviceError) {
	if f := checkARN("streamArn", arn); f != nil {
		return nil, f
	}
	s := e.byARN[arn]
	if s == nil {
		return nil, notFound("Stream: %s not found", arn)
	}
	return s, nil
}
