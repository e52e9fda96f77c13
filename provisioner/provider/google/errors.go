package google

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"golang.org/x/oauth2"
	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	"loom/provisioner/provider/cloud"
)

// reasons are those of refused calls whose kind the status does not tell.
var reasons = map[string]cloud.Kind{
	"quotaExceeded": cloud.Quota, "limitExceeded": cloud.Quota, "dailyLimitExceeded": cloud.Quota,
	"rateLimitExceeded": cloud.Throttled, "userRateLimitExceeded": cloud.Throttled, "operationRateLimitExceeded": cloud.Throttled,
	"resourceInUseByAnotherResource": cloud.Busy, "resourceNotReady": cloud.Busy, "resourceInUse": cloud.Busy,
	"alreadyExists": cloud.Conflict, "duplicate": cloud.Conflict, "notFound": cloud.NotFound,
	"backendError": cloud.Unavailable, "internalError": cloud.Unavailable,
}

// codes are those of operations that failed. What is not here is a setting that
// the cloud refuses.
var codes = map[string]cloud.Kind{
	"QUOTA_EXCEEDED": cloud.Quota, "LIMIT_EXCEEDED": cloud.Quota, "ZONE_RESOURCE_POOL_EXHAUSTED": cloud.Quota,
	"ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": cloud.Quota, "STOCKOUT": cloud.Quota, "IP_SPACE_EXHAUSTED": cloud.Quota,
	"RESOURCE_POOL_EXHAUSTED": cloud.Quota, "RESOURCE_ALREADY_EXISTS": cloud.Conflict, "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE": cloud.Conflict,
	"PERMISSIONS_ERROR": cloud.Refused, "FORBIDDEN": cloud.Refused, "RATE_LIMIT_EXCEEDED": cloud.Throttled,
	"RESOURCE_OPERATION_RATE_EXCEEDED": cloud.Throttled, "INTERNAL_ERROR": cloud.Unavailable, "BACKEND_ERROR": cloud.Unavailable,
	"RESOURCE_NOT_READY": cloud.Unavailable,
}

// classify knows the errors of the client.
func classify(err error) *cloud.Error {
	var own *cloud.Error
	if errors.As(err, &own) {
		return own
	}
	var token tokenError
	if errors.As(err, &token) {
		return tokenTrouble(token)
	}
	var said *googleapi.Error
	if !errors.As(err, &said) {
		return cloud.FromNetwork(err)
	}
	message, kind := said.Message, cloud.Kind("")
	for _, item := range said.Errors {
		if k, ok := reasons[item.Reason]; ok && kind == "" {
			kind = k
		}
		if item.Reason != "" && !strings.HasPrefix(message, item.Reason) {
			message = item.Reason + ": " + message
		}
	}
	if said.Code < http.StatusBadRequest {
		return &cloud.Error{Kind: cloud.Lost, Message: "the answer of Compute Engine cannot be read", Err: err}
	}
	e := cloud.FromHTTP(said.Code, said.Header, message, err)
	if kind != "" && e.Kind != cloud.Throttled {
		e.Kind = kind
	}
	return e
}

// tokenTrouble is an error on the way to a token. Nothing was asked of the cloud.
func tokenTrouble(err tokenError) *cloud.Error {
	e := cloud.FromNetwork(err.error)
	var said *oauth2.RetrieveError
	if errors.As(err, &said) && said.Response != nil {
		why := tokenReason(said.Body)
		message := "Google gives no access token for the service account"
		if why != "" {
			message += " (" + why + ")"
		}
		e = cloud.FromHTTP(said.Response.StatusCode, said.Response.Header, message+"; check the key in api_key_resource", err)
		switch {
		case reasons[why] == cloud.Throttled:
			e.Kind = cloud.Throttled
		case e.Kind != cloud.Throttled && e.Kind != cloud.Unavailable:
			e.Kind = cloud.Credentials
		}
	}
	e.Before = true
	return e
}

// tokenReason reads why there is no token: a word, or an error as the API itself
// has them.
func tokenReason(body []byte) string {
	var word struct{ Error string }
	if json.Unmarshal(body, &word) == nil {
		return word.Error
	}
	var whole struct {
		Error struct{ Errors []googleapi.ErrorItem }
	}
	if json.Unmarshal(body, &whole) == nil && len(whole.Error.Errors) > 0 {
		return whole.Error.Errors[0].Reason
	}
	return ""
}

// operationError is the error of an operation that is over, nil for none. Such an
// operation made nothing, also where the cloud's own trouble is the reason.
func operationError(op *compute.Operation) *cloud.Error {
	if op.Error == nil || len(op.Error.Errors) == 0 {
		return nil
	}
	first := op.Error.Errors[0]
	kind, ok := codes[first.Code]
	if !ok {
		kind = cloud.Refused
	}
	return &cloud.Error{Kind: kind, Message: first.Code + ": " + first.Message, Before: true}
}

// statusOf returns the status of a refused call, 0 for other errors.
func statusOf(err error) int {
	var said *googleapi.Error
	if errors.As(err, &said) {
		return said.Code
	}
	return 0
}
