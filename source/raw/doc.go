// Package raw calls DynamoDB without decoding what it replies: the body of a success comes back as it is, because the
// SDK decodes a page fifteen times slower than package change scans it.
//
// Body stores the reply to one of the SDK's own calls, and Client sends GetRecords without the SDK's middleware.
// Signing, endpoints and typed errors are the SDK's, or equal to them. Clock estimates the service's time from its
// replies, and NetworkFailure stores why the newest request got no reply.
//
// Files, from the top down:
//
//	client.go           GetRecords without the SDK's middleware
//	sign.go             signatures
//	whole.go            which members each decoded reply must have
//	body.go             the body of a reply, as it came
//	buffers.go          buffers of bodies
//	clock.go            the service's clock
//	dates.go            which Date headers are the service's time
//	network_failure.go  why a request got no reply
//	errors.go           malformed replies
package raw
