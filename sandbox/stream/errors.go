package stream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// serviceError is an error reply of the service.
type serviceError struct {
	status  int
	code    string
	message string
}

func (e *serviceError) Error() string { return e.code + ": " + e.message }

// invalid returns a ValidationException.
func invalid(format string, args ...any) *serviceError {
	return &serviceError{http.StatusBadRequest, "ValidationException", fmt.Sprintf(format, args...)}
}

// refusal returns an error with status 400.
func refusal(code, format string, args ...any) *serviceError {
	return &serviceError{http.StatusBadRequest, code, fmt.Sprintf(format, args...)}
}

// notFound returns the error for an ARN or a shard that does not exist, or no longer does.
func notFound(format string, args ...any) *serviceError {
	return refusal("ResourceNotFoundException", "Requested resource not found: "+format, args...)
}

// constraint returns the ValidationException for a value outside its bounds.
func constraint(value any, field, bound string) *serviceError {
	return invalid("1 validation error detected: Value '%v' at '%s' failed to satisfy constraint: Member must %s", value,
		field, bound)
}

// ErrorReply returns the body of an error reply.
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

// checkARN checks the form of a stream's ARN in a field of the request. The service has a message
// for each rule.
func checkARN(field, arn string) *serviceError {
	switch {
	case arn == "":
		return invalid("1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be "+
			"null", field)
	case len(arn) < 37:
		return constraint(arn, field, "have length greater than or equal to 37")
	case len(arn) > 1024:
		return constraint(arn, field, "have length less than or equal to 1024")
	case !strings.HasPrefix(arn, "arn:") || !strings.Contains(arn, ":table/") || !strings.Contains(arn, "/stream/"):
		return invalid("Invalid %s: %s", strings.ToUpper(field[:1])+field[1:], arn)
	}
	return nil
}

// checkShardID checks the length of a shard's id in a field of the request.
func checkShardID(field, id string) *serviceError {
	switch {
	case len(id) < 28:
		return constraint(id, field, "have length greater than or equal to 28")
	case len(id) > 65:
		return constraint(id, field, "have length less than or equal to 65")
	}
	return nil
}

// trimmedAccess returns the error for a position of a trimmed record.
func trimmedAccess() *serviceError {
	return refusal("TrimmedDataAccessException",
		"The operation attempted to read past the oldest stream record in a shard.")
}
