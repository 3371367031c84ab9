// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// readiness asks a starting API server whether it is ready.
type readiness struct {
	client kubernetes.Interface
}

func newReadiness(kubeconfig string) (*readiness, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", kubeconfig, err)
	}
	config.QPS = -1 // no client-side limit: these are a few dozen small requests
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &readiness{client: client}, nil
}

// awaitReadyz returns when /readyz says ok. It polls, as there is nothing to watch yet; hopeless, asked each time, may
// end it early.
func (r *readiness) awaitReadyz(ctx context.Context, hopeless func() error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := r.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		if err == nil {
			return nil
		}
		if err := hopeless(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the API server: %w (last answer: %w)", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// awaitServiceAccount returns when pods can be created in the default namespace, which also shows that controllers run.
func (r *readiness) awaitServiceAccount(ctx context.Context) error {
	accounts := r.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	for {
		// Without a resource version a watch begins with what exists.
		w, err := accounts.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "default").String()})
		if err == nil {
			found := awaitAdded(ctx, w)
			w.Stop()
			if found {
				return nil
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait for the default service account: %w", context.Cause(ctx))
		}
		if err != nil {
			return fmt.Errorf("watch the default service account: %w", err)
		}
	}
}

// awaitAdded reports whether an object appeared before the watch ended.
func awaitAdded(ctx context.Context, w watch.Interface) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case event, ok := <-w.ResultChan():
			if !ok {
				return false
			}
			if event.Type == watch.Added || event.Type == watch.Modified {
				return true
			}
		}
	}
}
