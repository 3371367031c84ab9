// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"karpenter/cloud/aws/awsfake"
	"karpenter/cloud/aws/awsfake/boot"
	"karpenter/cloud/aws/awsfake/wire"
	"karpenter/internal/journal"
)

// run serves the account and boots its instances until ctx is done.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	kube, err := o.connect()
	if err != nil {
		return err
	}
	url := o.endpoint
	group, ctx := errgroup.WithContext(ctx)
	if url == "" {
		account, err := o.open(log)
		if err != nil {
			return err
		}
		listener, err := net.Listen("tcp", o.listen)
		if err != nil {
			return fmt.Errorf("listen at --listen %s: %w", o.listen, err)
		}
		url = "http://" + listener.Addr().String()
		group.Go(func() error { return serve(ctx, listener, account) })
	}
	if kube != nil {
		group.Go(func() error { return boot.Run(ctx, o.machines(url, kube, log)) })
	}
	if _, err := fmt.Fprintf(stdout, "ready url=%s\n", url); err != nil {
		return err
	}
	return group.Wait()
}

// connect reads the kubeconfig, if there is one, and fills in options from the
// cluster.
func (o *options) connect() (kubernetes.Interface, error) {
	if o.kubeconfig == "" {
		return nil, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read --kubeconfig %s: %w", o.kubeconfig, err)
	}
	config.QPS = -1 // instances do not wait for each other
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster of --kubeconfig %s: %w", o.kubeconfig, err)
	}
	if o.version == "" {
		version, err := kube.Discovery().ServerVersion()
		if err != nil {
			return nil, fmt.Errorf("ask the API server for its version (or set --kubernetes-version): %w", err)
		}
		o.version = version.Major + "." + strings.TrimRight(version.Minor, "+")
	}
	o.clusterEndpoint = cmp.Or(o.clusterEndpoint, config.Host)
	if o.clusterCA == "" {
		o.clusterCA, err = authority(config)
	}
	return kube, err
}

func authority(config *rest.Config) (string, error) {
	pem := config.CAData
	if len(pem) == 0 && config.CAFile != "" {
		var err error
		if pem, err = os.ReadFile(config.CAFile); err != nil {
			return "", fmt.Errorf("read the cluster's certificate authority: %w", err)
		}
	}
	return base64.StdEncoding.EncodeToString(pem), nil
}

// open returns the account to serve.
func (o *options) open(log *slog.Logger) (*awsfake.AWS, error) {
	if o.journal == "" {
		return awsfake.New(o.account())
	}
	return journal.Open(o.journal, log, func(past []awsfake.Entry, record func(awsfake.Entry)) (*awsfake.AWS, error) {
		config := o.account()
		config.Record = record
		if len(past) == 0 {
			return awsfake.New(config)
		}
		return awsfake.Restore(config, past)
	})
}

func (o *options) account() awsfake.Config {
	seed := uint32(o.seed)
	if seed == 0 {
		seed = uint32(time.Now().Unix())
	}
	return awsfake.Config{
		Clock: clock.RealClock{}, Region: o.region, Cluster: o.cluster, KubernetesVersion: cmp.Or(o.version, "1.34"),
		Endpoint: o.clusterEndpoint, CertificateAuthority: o.clusterCA, Seed: seed,
		BootDelay: o.bootDelay, ShutdownDelay: o.shutdownDelay, VisibleAfter: o.visibleAfter,
	}
}

func (o *options) machines(url string, kube kubernetes.Interface, log *slog.Logger) boot.Config {
	return boot.Config{
		EC2: ec2.New(ec2.Options{
			Region: o.region, BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider(machinesKey, machinesKey, ""),
		}),
		Kube: kube, Region: o.region, Cluster: o.cluster, Delay: o.joinDelay, Every: o.every,
		Overhead: o.memoryOverhead, Clock: clock.RealClock{}, Log: log,
	}
}

// machinesKey is the access key that this program uses for its own calls.
const machinesKey = "awssim-machines"

// serve answers requests until ctx is done. It then cancels requests in
// progress, such as long polls of queues.
func serve(ctx context.Context, listener net.Listener, account *awsfake.AWS) error {
	mux := http.NewServeMux()
	aws := wire.New(account.Services())
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Authorization"), "Credential="+machinesKey+"/") {
			r = r.WithContext(awsfake.Unguarded(r.Context()))
		}
		aws.ServeHTTP(w, r)
	})
	mux.Handle(controlPath, newControl(account))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
