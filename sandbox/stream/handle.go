package stream

import (
	"encoding/json"
	"net/http"
)

// Handle answers one operation of the streams API (ListStreams, DescribeStream,
// GetShardIterator, GetRecords): body and reply are awsJson 1.0. The caller owns the
// reply and may give it back with Release once it is written.
func (e *Engine) Handle(op string, body []byte) (status int, reply []byte) {
	var bad *serviceError
	switch op {
	case "ListStreams":
		reply, bad = answer(body, e.listStreams)
	case "DescribeStream":
		reply, bad = answer(body, e.describeStream)
	case "GetShardIterator":
		reply, bad = answer(body, e.getShardIterator)
	case "GetRecords":
		reply, bad = e.getRecords(body)
	default:
		bad = refusal("UnknownOperationException", "")
	}
	if bad != nil {
		return bad.status, ErrorReply(bad.code, bad.message)
	}
	return http.StatusOK, reply
}

// answer decodes a request, runs its operation and encodes the reply.
func answer[In, Out any](body []byte, run func(*In) (*Out, *serviceError)) ([]byte, *serviceError) {
	var in In
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, refusal("SerializationException", "%v", err)
	}
	out, bad := run(&in)
	if bad != nil {
		return nil, bad
	}
	reply, err := json.Marshal(out)
	if err != nil {
		return nil, &serviceError{http.StatusInternalServerError, "InternalServerError", err.Error()}
	}
	return reply, nil
}
