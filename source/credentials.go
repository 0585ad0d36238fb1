package source

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/ssocreds"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/tailrace-cdc/replicator/failure"
)

// isCredentials reports whether the SDK could not find or refresh credentials, for which it has no
// error type.
func isCredentials(err error) bool {
	var op *smithy.OperationError
	if !errors.As(err, &op) {
		return false
	}
	for e := op.Err; e != nil; e = errors.Unwrap(e) {
		if strings.HasPrefix(e.Error(), "get identity") {
			return true
		}
	}
	return false
}

// expiredCodes are the answers to a session that has expired. A new session ends that: a
// process that refreshes its credentials itself may send a call with the old ones meanwhile.
//
// Source: https://docs.aws.amazon.com/STS/latest/APIReference/CommonErrors.html
var expiredCodes = map[string]bool{"ExpiredTokenException": true, "ExpiredToken": true}

// codeNoProvider is the answer of STS that the identity provider does not answer it: it may do so
// at the next try, although the status is 400.
//
// Source: https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html
const codeNoProvider = "IDPCommunicationError"

// skewCodes are the answers to a signature whose time is not that of the service.
var skewCodes = map[string]bool{
	"RequestExpired": true, "RequestTimeTooSkewed": true, "InvalidSignatureException": true, "SignatureDoesNotMatch": true,
}

// inner returns the call that a provider of credentials made and that failed; nil: it made none.
func inner(err error) *smithy.OperationError {
	var call, next *smithy.OperationError
	for errors.As(err, &next) {
		call, err = next, next.Err
	}
	if call != nil && strings.HasPrefix(call.ServiceID, "DynamoDB") {
		return nil
	}
	return call
}

// credentialsClass returns the class of an error of isCredentials. It follows from the cause
// inside: an STS that does not answer denies nothing.
func credentialsClass(err error) failure.Class {
	var (
		status *smithyhttp.ResponseError
		send   *smithyhttp.RequestSendError
		netErr net.Error
	)
	call := inner(err)
	if call == nil || call.ServiceID == "ec2imds" { // there is nothing to ask, or nobody who answers
		return failure.Denied
	}
	if code := codeOf(call); expiredCodes[code] || code == codeNoProvider || throttles.IsErrorThrottle(call).Bool() {
		return failure.Transient
	}
	switch {
	case errors.As(call, &status) && status.HTTPStatusCode() >= 500:
		return failure.Transient
	case errors.As(call, &status) && status.HTTPStatusCode() > 0:
		return failure.Denied
	case errors.As(call, &send), errors.As(call, &netErr), errors.Is(call, context.DeadlineExceeded):
		return failure.Transient
	}
	return failure.Denied
}

// credentialsHint returns what an operator can do where no credentials were to be had: it depends
// on the provider that failed, and on how.
func credentialsHint(err error) string {
	var sso *ssocreds.InvalidTokenError
	var process *processcreds.ProviderError
	text := err.Error()
	switch {
	case errors.As(err, &sso), strings.Contains(text, "SSO token"):
		return "the session of IAM Identity Center has expired: `aws sso login`, with AWS_PROFILE as the replicator has it"
	case strings.Contains(text, "please reauthenticate"):
		return "the session has expired: `aws login`"
	case errors.As(err, &process):
		return "the credential_process of the profile failed: run its command as the replicator's user"
	case strings.Contains(text, "unable to read file at"):
		return "the token file that AWS_WEB_IDENTITY_TOKEN_FILE names cannot be read: is the service account's token " +
			"mounted, and may the replicator's user read it?"
	case strings.Contains(text, "failed to load credentials"):
		return "the endpoint of AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI gives no credentials: is the agent of " +
			"EKS Pod Identity or of ECS running, and has the pod or task a role?"
	}
	call := inner(err)
	if call == nil || call.ServiceID != "STS" {
		return "no AWS credentials were found: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, " +
			"or give the pod a role; for the sandbox: eval \"$(replicator sandbox env)\""
	}
	return stsHint(call)
}

// stsHint returns what helps where STS gives no credentials.
func stsHint(call *smithy.OperationError) string {
	code := codeOf(call)
	switch {
	case code == "":
		return "STS does not answer: is its endpoint in this region reachable (a VPC endpoint for sts, the proxy, the " +
			"firewall)? AWS_ENDPOINT_URL_STS names another one"
	case skewCodes[code]:
		return "STS refuses the signature: is this machine's clock right, and the secret key?"
	case expiredCodes[code] && call.OperationName == "AssumeRole":
		return "the credentials that assume source.assume_role have expired: renew them"
	case code == codeNoProvider:
		return "STS cannot reach the cluster's OIDC provider: reading goes on by itself once it can"
	case call.OperationName == "AssumeRoleWithWebIdentity" && code == "AccessDenied":
		return "STS refuses the pod's identity: the trust policy of AWS_ROLE_ARN must name the cluster's OIDC provider, " +
			"the service account, and the audience sts.amazonaws.com"
	case call.OperationName == "AssumeRoleWithWebIdentity":
		return "STS does not take the token of AWS_WEB_IDENTITY_TOKEN_FILE: is it of this cluster, and is it renewed " +
			"before it expires?"
	case call.OperationName == "AssumeRole":
		return "source.assume_role may not be assumed: its trust policy must allow the caller, and the caller needs " +
			"sts:AssumeRole; `aws sts get-caller-identity` shows who calls"
	}
	return "STS refuses " + call.OperationName + ": `aws sts get-caller-identity` shows who calls"
}

// codeOf returns the code that a service answered a call with; "": it gave no answer.
func codeOf(call error) string {
	var api smithy.APIError
	if errors.As(call, &api) {
		return api.ErrorCode()
	}
	return ""
}

// credentialsText returns what failed, without the descriptions of the calls around it.
func credentialsText(err error) string {
	if call := inner(err); call != nil {
		if api := (smithy.APIError)(nil); errors.As(call, &api) && api.ErrorMessage() != "" {
			return fmt.Sprintf("no credentials: %s %s: %s: %s", call.ServiceID, call.OperationName, api.ErrorCode(),
				api.ErrorMessage())
		}
		return fmt.Sprintf("no credentials: %s %s: %v", call.ServiceID, call.OperationName, lastOf(call))
	}
	return fmt.Sprintf("no credentials: %v", lastOf(err))
}

// lastOf returns the innermost error.
func lastOf(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
