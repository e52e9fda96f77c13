package nova

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
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
		e := Classify(again.ErrReauth)
		e.Before = true // the call itself was refused
		return e
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
	case answer.Actual == http.StatusBadRequest:
		e.Message = named(e.Message)
	}
	return e
}

// ours are the words with which Nova names what it was asked for with, and what that is
// called here.
var ours = []struct {
	word  *regexp.Regexp
	field string
}{
	{regexp.MustCompile(`(?i)\bkey_name\b|\bkeypair\b|\bkey pair\b`), "provider field ssh_keypair"},
	{regexp.MustCompile(`(?i)\bavailability[ _]zone\b`), "provider field availability_zone"},
	{regexp.MustCompile(`(?i)\bsecurity[ _]groups?\b`), "provider field security_groups"},
	{regexp.MustCompile(`(?i)\buser_?data\b`), "provider field user_data_resource"},
	{regexp.MustCompile(`(?i)\bblock[ _]device\b|\bblock_device_mapping(_v2)?\b|\bvolume_size\b|\bvolume is smaller\b`), "provider field boot_volume_size_gb"},
	{regexp.MustCompile(`(?i)\bimageref\b|^image \S+ could not be found`), "the image of the image type"},
	{regexp.MustCompile(`(?i)\bflavorref\b|^flavor \S+ could not be found`), "the flavor of the hardware type"},
	{regexp.MustCompile(`(?i)\bnetworks?\b|\bfixed_ip\b`), "provider field network_ids"},
}

// named adds to a message that speaks of a part of Nova's request what Loom calls it.
func named(message string) string {
	for _, o := range ours {
		if o.word.MatchString(message) {
			return message + " (" + o.field + ")"
		}
	}
	return message
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
