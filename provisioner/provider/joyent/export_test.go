package joyent

import (
	"context"
	"net/url"

	"loom/app/loom"
	"loom/provisioner/provider/cloud"
)

// Addresses returns those that a machine is reached at.
func Addresses(all []string) (access, bind string) { return addresses(all, false) }

// FirstBoot is the script that waits for the end of the first boot.
var FirstBoot = firstBoot

// NewLocal makes a provider whose machines may be on this host.
func NewLocal(o cloud.Options) *cloud.Provider {
	return newProvider(o, func(ctx context.Context, s *cloud.Session) (cloud.Driver, error) {
		d, err := dial(ctx, s)
		if err == nil {
			d.loopback = true
		}
		return d, err
	})
}

// ListPaged lists machines in pages of a size.
func ListPaged(ctx context.Context, o cloud.Options, call *loom.ProviderCall, size int) ([]cloud.Machine, error) {
	d, err := dial(ctx, o.Ask(Type(), call, classify))
	if err != nil {
		return nil, err
	}
	d.client.page = size
	return d.list(ctx, url.Values{})
}
