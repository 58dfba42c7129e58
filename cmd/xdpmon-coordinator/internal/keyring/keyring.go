// Package keyring is the verb keys: it makes, renews and revokes certificates.
package keyring

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/userspace/keys"
)

const keysLong = `Makes, renews and revokes the keys with which agents and coordinators authenticate: an authority of your own, and certificates that it
signs. A certificate binds a host's name to its key, so no host can use another one's name. Keys are 0600 in a folder of 0700; keep the authority's
(ca.key) on the machine where you run this, and give each host its own .crt and .key, and ca.crt.

A renewed certificate is used without a restart. Revoked certificates are listed in revoked.crl: copy it to the coordinators, which end
their connections within seconds.`

const keysExample = `  xdpmon-coordinator keys init
  xdpmon-coordinator keys coordinator central --host coordinator.example.net --host 192.0.2.7
  xdpmon-coordinator keys agent host1 host2 host3
  xdpmon-coordinator keys list
  xdpmon-coordinator keys renew host2
  xdpmon-coordinator keys revoke host3`

// Environment is the verb's interface to the command line that it is part of.
type Environment struct {
	Now   func() time.Time
	Print func(lines ...string) error
	Usage func(format string, args ...any) error // makes an error of wrong usage
	Args  func(least, most int, what string) cobra.PositionalArgs
}

// New is the verb.
func New(env Environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "keys", Short: "Make, renew and revoke certificates of agents and coordinators", Long: keysLong, Example: keysExample,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return env.Usage("keys does one of: init, coordinator, agent, renew, revoke, list")
		},
	}
	dir := cmd.PersistentFlags().String("dir", "keys", "the folder of keys, `DIR`")
	k := &keyring{env: env, dir: dir}
	cmd.AddCommand(k.init(), k.coordinator(), k.agent(), k.renew(), k.revoke(), k.list())
	return cmd
}

// keyring is the folder of the keys.
type keyring struct {
	env Environment
	dir *string
}

func (k *keyring) folder() keys.Folder { return keys.Folder{Path: *k.dir, Now: k.env.Now} }

func addDays(cmd *cobra.Command, days int) *int {
	return cmd.Flags().Int("days", days, "validity in days")
}

func (k *keyring) checkDays(days int) error {
	if days < 1 || days > 36500 {
		return k.env.Usage("--days %d: 1 to 36500", days)
	}
	return nil
}

func (k *keyring) init() *cobra.Command {
	cmd := &cobra.Command{Use: "init", Short: "Make an authority", Args: k.env.Args(0, 0, "flags only")}
	days := addDays(cmd, keys.AuthorityDays)
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := k.checkDays(*days); err != nil {
			return err
		}
		if err := k.folder().Init(*days); err != nil {
			return err
		}
		return k.env.Print(fmt.Sprintf("%s: copy ca.crt to every host; keep ca.key secret", *k.dir))
	}
	return cmd
}

func (k *keyring) coordinator() *cobra.Command {
	cmd := &cobra.Command{Use: "coordinator NAME --host HOST", Short: "Make a coordinator's certificate", Args: k.env.Args(1, 1, "its name")}
	days := addDays(cmd, keys.DefaultDays)
	hosts := cmd.Flags().StringSlice("host", nil, "a name or address that agents connect to; repeatable")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := k.checkDays(*days); err != nil {
			return err
		}
		if len(*hosts) == 0 {
			return k.env.Usage("--host is missing: the names and addresses that agents connect to")
		}
		return k.made(args[0], k.folder().Make(keys.Coordinator, args[0], *hosts, *days))
	}
	return cmd
}

func (k *keyring) made(name string, err error) error {
	if err != nil {
		return err
	}
	return k.env.Print(fmt.Sprintf("%s/%s.crt and %s.key", *k.dir, name, name))
}

func (k *keyring) agent() *cobra.Command {
	cmd := &cobra.Command{Use: "agent NAME...", Short: "Make agents' certificates", Args: k.env.Args(1, -1, "the name of a host")}
	days := addDays(cmd, keys.DefaultDays)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := k.checkDays(*days); err != nil {
			return err
		}
		for _, name := range args {
			if err := k.made(name, k.folder().Make(keys.Agent, name, nil, *days)); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

func (k *keyring) renew() *cobra.Command {
	cmd := &cobra.Command{Use: "renew NAME...", Short: "Replace keys by new ones", Args: k.env.Args(1, -1, "a name")}
	days := addDays(cmd, keys.DefaultDays)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := k.checkDays(*days); err != nil {
			return err
		}
		for _, name := range args {
			if err := k.made(name, k.folder().Renew(name, *days)); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

func (k *keyring) revoke() *cobra.Command {
	cmd := &cobra.Command{Use: "revoke NAME...", Short: "Revoke certificates", Args: k.env.Args(1, -1, "a name")}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		for _, name := range args {
			if err := k.folder().Revoke(name); err != nil {
				return err
			}
		}
		return k.env.Print(fmt.Sprintf("%s/revoked.crl: copy it to the coordinators", *k.dir))
	}
	return cmd
}

func (k *keyring) list() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List certificates and when they expire", Args: k.env.Args(0, 0, "flags only")}
	cmd.RunE = func(*cobra.Command, []string) error {
		all, err := k.folder().List()
		if err != nil {
			return err
		}
		var lines []string
		for _, e := range all {
			line := fmt.Sprintf("%-24s %-12s until %s", e.Name, e.Role, e.Until.Format("2006-01-02"))
			switch now := k.env.Now(); {
			case e.Revoked:
				line += "  revoked"
			case now.After(e.Until):
				line += "  expired"
			case e.Until.Sub(now) < keys.Soon:
				line += "  expires soon"
			}
			if len(e.Hosts) > 0 {
				line += "  " + strings.Join(e.Hosts, " ")
			}
			lines = append(lines, line)
		}
		return k.env.Print(lines...)
	}
	return cmd
}
