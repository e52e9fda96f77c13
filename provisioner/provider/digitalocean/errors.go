package digitalocean

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/digitalocean/godo"

	"loom/provisioner/provider/cloud"
)

// classify knows the errors of the client.
func classify(err error) *cloud.Error {
	var said *godo.ErrorResponse
	if !errors.As(err, &said) || said.Response == nil {
		return cloud.FromNetwork(err)
	}
	message := said.Message
	if message != "" && said.RequestID != "" {
		message += " (request " + said.RequestID + ")"
	}
	e := cloud.FromHTTP(said.Response.StatusCode, said.Response.Header, message, err)
	switch {
	case e.Kind == cloud.Throttled && e.RetryAfter == 0:
		e.RetryAfter = untilReset(said.Response.Header, time.Now())
	case isRefusal(err) && strings.Contains(strings.ToLower(said.Message), "limit"):
		e.Kind = cloud.Quota
	}
	return e
}

// isRefusal reports a request that was understood and is not carried out.
func isRefusal(err error) bool {
	var said *godo.ErrorResponse
	if !errors.As(err, &said) || said.Response == nil {
		return false
	}
	return said.Response.StatusCode == http.StatusUnprocessableEntity || said.Response.StatusCode == http.StatusConflict
}

// untilReset reads when the first of the hour's calls is forgotten.
func untilReset(header http.Header, now time.Time) time.Duration {
	at, err := strconv.ParseInt(header.Get("RateLimit-Reset"), 10, 64)
	if err != nil {
		return 0
	}
	return min(max(time.Unix(at, 0).Sub(now), 0), time.Hour)
}
