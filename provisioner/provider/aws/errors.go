package aws

import (
	"errors"
	"net/http"
	"strings"

	smithy "github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"loom/provisioner/provider/cloud"
)

// codes are the error codes of EC2 whose kind the status does not tell.
var codes = map[string]cloud.Kind{
	"AuthFailure": cloud.Credentials, "UnauthorizedOperation": cloud.Refused, "InvalidClientTokenId": cloud.Credentials,
	"SignatureDoesNotMatch": cloud.Credentials, "OptInRequired": cloud.Credentials, "Blocked": cloud.Credentials,
	"PendingVerification": cloud.Credentials, "ExpiredToken": cloud.Credentials, "RequestExpired": cloud.Credentials,
	"MissingAuthenticationToken": cloud.Credentials, "UnrecognizedClientException": cloud.Credentials, "IncompleteSignature": cloud.Credentials,

	"InstanceLimitExceeded": cloud.Quota, "VcpuLimitExceeded": cloud.Quota, "InsufficientInstanceCapacity": cloud.Quota,
	"InsufficientHostCapacity": cloud.Quota, "InsufficientCapacity": cloud.Quota, "InsufficientFreeAddressesInSubnet": cloud.Quota,
	"InsufficientReservedInstanceCapacity": cloud.Quota, "ResourceLimitExceeded": cloud.Quota, "VolumeLimitExceeded": cloud.Quota,
	"MaxIOPSLimitExceeded": cloud.Quota, "AddressLimitExceeded": cloud.Quota,

	"InvalidInstanceID.NotFound": cloud.NotFound, "InvalidInstanceID.Malformed": cloud.NotFound,
	"IncorrectInstanceState": cloud.Busy, "IncorrectState": cloud.Busy,

	"RequestLimitExceeded": cloud.Throttled, "Throttling": cloud.Throttled, "ThrottlingException": cloud.Throttled,
	"RequestThrottled": cloud.Throttled, "EC2ThrottledException": cloud.Throttled, "SlowDown": cloud.Throttled,
	"TooManyRequestsException": cloud.Throttled, "Client.RequestLimitExceeded": cloud.Throttled,

	"InternalError": cloud.Unavailable, "InternalFailure": cloud.Unavailable, "ServiceUnavailable": cloud.Unavailable,
	"Unavailable": cloud.Unavailable,
}

// classify knows the errors of the client. Messages begin with EC2's code, which is
// what one looks up.
func classify(err error) *cloud.Error {
	var answer *smithyhttp.ResponseError
	if !errors.As(err, &answer) {
		var sent *smithyhttp.RequestSendError
		if errors.As(err, &sent) {
			return cloud.FromNetwork(sent.Err)
		}
		return cloud.FromNetwork(err)
	}
	header := http.Header{}
	if answer.Response != nil && answer.Response.Response != nil {
		header = answer.Response.Header
	}
	status := answer.HTTPStatusCode()
	var said smithy.APIError
	if !errors.As(err, &said) || said.ErrorCode() == "UnknownError" {
		if status < 300 {
			return &cloud.Error{Kind: cloud.Lost, Message: "the answer of EC2 cannot be read", Err: err}
		}
		return cloud.FromHTTP(status, header, "", err)
	}
	code := said.ErrorCode()
	e := cloud.FromHTTP(status, header, code+": "+said.ErrorMessage(), err)
	// EC2 answers almost everything with 400.
	if kind, ok := codes[code]; ok {
		e.Kind = kind
	} else if strings.HasPrefix(code, "AccessDenied") {
		e.Kind = cloud.Refused
	} else if e.Kind == cloud.NotFound || e.Kind == cloud.Conflict {
		e.Kind = cloud.Refused
	}
	return e
}

func hasCode(err error, code string) bool {
	var said smithy.APIError
	return errors.As(err, &said) && said.ErrorCode() == code
}
