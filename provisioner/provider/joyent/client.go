package joyent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"loom/provisioner/provider/cloud"
)

// pageSize is the most that one answer of the API lists.
const pageSize = 1000

// client makes calls of CloudAPI, which are few.
type client struct {
	http                    *http.Client
	address, login, version string
	authorize               authorizer
	// page is how many machines are asked for at once, 0 for pageSize.
	page int
}

// refusal is an answer with a status that is no success.
type refusal struct {
	status        int
	header        http.Header
	code, message string
}

// Error is for the log.
func (r *refusal) Error() string { return fmt.Sprintf("%d %s: %s", r.status, r.code, r.message) }

// unreadable is an answer of success that cannot be read.
type unreadable struct{ error }

// Unwrap returns the cause.
func (u unreadable) Unwrap() error { return u.error }

// call makes one call. path is below the account; in and out may be nil.
func (c *client) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("write the request: %w", err)
		}
		body = bytes.NewReader(data)
	}
	address := c.address + "/" + url.PathEscape(c.login) + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return cloud.Errorf(cloud.Refused, "the address of the API makes no request")
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Accept-Version", c.version)
	r.Header.Set("User-Agent", "loom")
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if err := c.authorize(r); err != nil {
		return err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		// 410 has a body that describes what is gone, not an error.
		said := struct{ Code, Message string }{}
		_ = json.Unmarshal(data, &said) // a gateway's page says nothing of use
		return &refusal{answer.StatusCode, answer.Header, said.Code, said.Message}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return unreadable{err}
	}
	return nil
}

// machines lists the account's machines, all pages of them.
func (c *client) machines(ctx context.Context, query url.Values) ([]vm, error) {
	size := c.page
	if size == 0 {
		size = pageSize
	}
	query.Set("limit", strconv.Itoa(size))
	var all []vm
	for {
		query.Set("offset", strconv.Itoa(len(all)))
		var page []vm
		if err := c.call(ctx, http.MethodGet, "/machines", query, nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page...)
		cloud.Kept(ctx, len(all))
		if len(page) < size {
			return all, nil
		}
	}
}

// kinds are those of error codes that the status does not tell.
var kinds = map[string]cloud.Kind{
	"InvalidCredentials": cloud.Credentials, "NotAuthorized": cloud.Credentials, "AuthSchemeError": cloud.Credentials, "AuthorizationFailed": cloud.Credentials,
	"InvalidSignature": cloud.Credentials, "InvalidKeyId": cloud.Credentials, "AccountBlocked": cloud.Credentials,
	"QuotaExceeded": cloud.Quota, "InsufficientCapacity": cloud.Quota, "InsufficientServers": cloud.Quota, "NotEnoughSpace": cloud.Quota,
	"RequestThrottled": cloud.Throttled, "RequestTooLarge": cloud.Refused, "ResourceNotFound": cloud.NotFound, "InUseError": cloud.Busy,
	"ServiceUnavailable": cloud.Unavailable, "InternalError": cloud.Unavailable,
}

// classify knows the errors of the client. Messages begin with the code, which is
// what one looks up.
func classify(err error) *cloud.Error {
	var own *cloud.Error
	if errors.As(err, &own) {
		return own
	}
	var broken unreadable
	if errors.As(err, &broken) {
		return &cloud.Error{Kind: cloud.Lost, Message: "the answer of CloudAPI cannot be read", Err: err}
	}
	var said *refusal
	if !errors.As(err, &said) {
		return cloud.FromNetwork(err)
	}
	message := said.message
	if said.code != "" {
		message = said.code + ": " + message
	}
	e := cloud.FromHTTP(said.status, said.header, message, err)
	if kind, ok := kinds[said.code]; ok && e.Kind != cloud.Unavailable && e.Kind != cloud.Throttled && (kind != cloud.Credentials || said.status != http.StatusForbidden) {
		e.Kind = kind
	}
	return e
}
