package nova

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"loom/provisioner/provider/cloud"
)

// Classify knows the errors of the client. Nil stays nil.
func Classify(err error) *cloud.Error {
	if err == nil {
		return nil
	}
	var e *cloud.Error
	if errors.As(err, &e) {
		given := *e
		return &given
	}
	// A token ran out and no new one was given: that is the trouble.
	var again *gophercloud.ErrUnableToReauthenticate
	if errors.As(err, &again) {
		return Classify(again.ErrReauth)
	}
	var answer gophercloud.ErrUnexpectedResponseCode
	if !errors.As(err, &answer) {
		return cloud.FromNetwork(err)
	}
	code, message := said(answer.Body)
	e = cloud.FromHTTP(answer.Actual, answer.ResponseHeader, message, err)
	words := strings.ToLower(code + " " + message)
	switch {
	case answer.Actual < 500 && e.Kind != cloud.Throttled && quota(words):
		e.Kind = cloud.Quota
	case strings.Contains(words, "multiple possible networks"):
		e.Kind = cloud.Refused
		e.Message += "; name one in provider field network_ids"
	case answer.Actual == http.StatusPreconditionFailed:
		e.Kind = cloud.Conflict
	}
	return e
}

// quota reports the words of a limit. Nova refuses with 403 what exceeds a quota,
// which is not a matter of credentials.
func quota(words string) bool {
	for _, word := range []string{"quota", "overlimit", "ipaddressgenerationfailure", "externalipaddressexhausted", "no more ip addresses", "maximum number of",
		"no fixed ip addresses available"} {
		if strings.Contains(words, word) {
			return true
		}
	}
	return false
}

// said reads the body of a refusal: one object whose name or type says what kind
// it is of, with a message. What cannot be read is left out.
func said(body []byte) (code, message string) {
	var answer map[string]json.RawMessage
	if json.Unmarshal(body, &answer) != nil {
		return "", ""
	}
	for name, part := range answer {
		var inside struct {
			Message string `json:"message"`
			Type    string `json:"type"`
		}
		if json.Unmarshal(part, &inside) == nil && inside.Message != "" {
			return name + " " + inside.Type, inside.Message
		}
		if name == "message" {
			_ = json.Unmarshal(part, &message)
		}
	}
	return code, message
}
