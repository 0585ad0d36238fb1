package source

import (
	"context"
	"net/http"
	"time"

	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Signer returns a function that signs requests to DynamoDB with the credentials of this source, for
// its region. hash is the SHA-256 of the body in hex. The function sets the fields Authorization,
// X-Amz-Date and, for temporary credentials, X-Amz-Security-Token. It is safe for concurrent use.
func (s *Source) Signer() func(ctx context.Context, r *http.Request, hash string) error {
	o := s.tables.Options()
	v4 := signer.NewSigner()
	return func(ctx context.Context, r *http.Request, hash string) error {
		credentials, err := o.Credentials.Retrieve(ctx)
		if err != nil {
			return wrap(ctx, "sign a request", err)
		}
		return v4.SignHTTP(ctx, credentials, r, hash, "dynamodb", o.Region, time.Now())
	}
}

// Region returns the AWS region of the source.
func (s *Source) Region() string { return s.tables.Options().Region }
