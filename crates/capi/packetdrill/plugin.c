/* linerate under packetdrill: packetdrill's interface on top of linerate.h, in virtual time.
 *
 *   packetdrill --so_filename=liblinerate_packetdrill.so tests/packetdrill/SCRIPT.pkt
 *
 * The stack takes the address that the script binds to, which packetdrill chooses at random unless told, and packetdrill's
 * MTU: 1500 for IPv4, 1520 for IPv6. The flags (--so_flags) say otherwise: addresses with their prefix lengths and
 * `mtu=BYTES`, separated by commas. `no-push` takes PSH out of what the stack sends, for scripts that expect it where
 * another stack's buffers happen to end.
 *
 * Time stands still but for usleep and netdev_receive, and a microsecond for each call. A call on a blocking socket that
 * comes from packetdrill's thread for such calls waits until another thread's passing of time or packets completes it; the
 * first thread never waits, because nobody else would make time pass: there EAGAIN or EINPROGRESS is the result.
 * SO_SNDBUF and SO_RCVBUF are doubled, as Linux does. epoll, pipe and splice give ENOSYS.
 *
 * Blocks of code in scripts ask the system for TCP_INFO, not this table. With LD_PRELOAD=liblinerate_packetdrill.so they
 * get ours. */
#define _GNU_SOURCE

#include "interface.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "linerate.h"
#include "world.h"

#define ADDRESSES "192.168.0.1/16,fd3d:a0b:17d6::1/48"
#define MTU 1500
#define MTU_IPV6 1520
/* As large as the scripts take Linux to be set up; the window scale follows from it. */
#define BUFFER_MAX (15u << 20)

/* The result of a call in the system's manner, after the stack did what follows from it. */
static ssize_t finish(struct plugin *plugin, ssize_t result)
{
    settle(plugin);
    if (pthread_equal(plugin->first, pthread_self()))
        retry(plugin);
    plugin->now_ns += TICK_NS;
    pthread_mutex_unlock(&plugin->lock);
    if (result >= 0)
        return result;
    errno = (int)-result;
    return -1;
}

static struct plugin *start_call(void *userdata)
{
    struct plugin *plugin = userdata;
    pthread_mutex_lock(&plugin->lock);
    return plugin;
}

#define CALL(name, ...) \
    struct plugin *plugin = start_call(userdata); \
    return (__typeof__(lr_##name(plugin->stack, __VA_ARGS__)))finish(plugin, lr_##name(plugin->stack, __VA_ARGS__))

/* ---- Calls that wait. ---- */

/* Makes a call, and waits for its end where the socket blocks and another thread lets time pass. */
static ssize_t make(void *userdata, struct call *call)
{
    struct plugin *plugin = start_call(userdata);
    ssize_t result = call->attempt(plugin, call);
    int is_known = call->fd >= 0 && call->fd < DESCRIPTORS;
    int may_wait = !(is_known && plugin->non_blocking[call->fd]) && !(call->flags & MSG_DONTWAIT);

    if (result == -EAGAIN && may_wait && !pthread_equal(plugin->first, pthread_self())) {
        settle(plugin);
        plugin->waiting = call;
        while (!call->is_over)
            pthread_cond_wait(&plugin->changed, &plugin->lock);
        result = call->result;
    } else if (result == -EAGAIN && call->done > 0) {
        result = (ssize_t)call->done;
    }
    return finish(plugin, result);
}

static ssize_t try_accept(struct plugin *plugin, struct call *call)
{
    return lr_accept(plugin->stack, call->fd, call->address, call->length);
}

static ssize_t try_receive(struct plugin *plugin, struct call *call)
{
    return lr_recvmsg(plugin->stack, call->fd, call->message, call->flags & ~MSG_DONTWAIT);
}

/* -EAGAIN until everything was taken; a blocking socket waits for that. */
static ssize_t try_send(struct plugin *plugin, struct call *call)
{
    struct iovec rest[64];
    struct msghdr message = *call->message;
    size_t skip = call->done, left = 0;
    ssize_t result;

    if (message.msg_iovlen > sizeof rest / sizeof *rest)
        return -EMSGSIZE;
    for (size_t i = 0; i < message.msg_iovlen; i++) {
        size_t cut = skip < message.msg_iov[i].iov_len ? skip : message.msg_iov[i].iov_len;
        rest[i].iov_base = (char *)message.msg_iov[i].iov_base + cut;
        rest[i].iov_len = message.msg_iov[i].iov_len - cut;
        left += rest[i].iov_len;
        skip -= cut;
    }
    message.msg_iov = message.msg_iovlen > 0 ? rest : message.msg_iov;
    result = lr_sendmsg(plugin->stack, call->fd, &message, call->flags & ~MSG_DONTWAIT);
    if (result < 0)
        return result == -EAGAIN || call->done == 0 ? result : (ssize_t)call->done;
    call->done += (size_t)result;
    return (size_t)result == left ? (ssize_t)call->done : -EAGAIN;
}

/* After lr_connect: how the handshake ended. */
static ssize_t try_connected(struct plugin *plugin, struct call *call)
{
    struct pollfd entry = {.fd = call->fd, .events = POLLOUT};
    int error = 0;
    socklen_t length = sizeof error;

    if (lr_poll(plugin->stack, &entry, 1) == 0)
        return -EAGAIN;
    lr_getsockopt(plugin->stack, call->fd, SOL_SOCKET, SO_ERROR, &error, &length);
    return -error;
}

static ssize_t try_poll(struct plugin *plugin, struct call *call)
{
    int ready = lr_poll(plugin->stack, call->entries, call->count);
    return ready == 0 ? -EAGAIN : ready;
}

static int pd_accept(void *userdata, int fd, struct sockaddr *a, socklen_t *n)
{
    struct call call = {.attempt = try_accept, .fd = fd, .address = a, .length = n};
    return (int)make(userdata, &call);
}

static ssize_t receive(void *userdata, int fd, struct msghdr *message, int flags)
{
    struct call call = {.attempt = try_receive, .fd = fd, .message = message, .flags = flags};
    return make(userdata, &call);
}

static ssize_t send_all(void *userdata, int fd, const struct msghdr *message, int flags)
{
    struct msghdr copy = *message;
    struct call call = {.attempt = try_send, .fd = fd, .message = &copy, .flags = flags};
    return make(userdata, &call);
}

static ssize_t pd_recvmsg(void *userdata, int fd, struct msghdr *m, int flags) { return receive(userdata, fd, m, flags); }
static ssize_t pd_readv(void *userdata, int fd, const struct iovec *v, int n)
{
    struct msghdr message = {.msg_iov = (struct iovec *)v, .msg_iovlen = (size_t)n};
    return receive(userdata, fd, &message, 0);
}
static ssize_t pd_recvfrom(void *userdata, int fd, void *to, size_t n, int flags, struct sockaddr *a, socklen_t *l)
{
    struct iovec piece = {to, n};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_name = a, .msg_namelen = l ? *l : 0};
    ssize_t result = receive(userdata, fd, &message, flags);
    if (l != NULL)
        *l = message.msg_namelen;
    return result;
}
static ssize_t pd_recv(void *userdata, int fd, void *to, size_t n, int flags)
{
    return pd_recvfrom(userdata, fd, to, n, flags, NULL, NULL);
}
static ssize_t pd_read(void *userdata, int fd, void *to, size_t n) { return pd_recv(userdata, fd, to, n, 0); }
static ssize_t pd_sendmsg(void *userdata, int fd, const struct msghdr *m, int flags)
{
    return send_all(userdata, fd, m, flags);
}
static ssize_t pd_writev(void *userdata, int fd, const struct iovec *v, int n)
{
    struct msghdr message = {.msg_iov = (struct iovec *)v, .msg_iovlen = (size_t)n};
    return send_all(userdata, fd, &message, 0);
}
static ssize_t pd_sendto(void *userdata, int fd, const void *from, size_t n, int flags, const struct sockaddr *a,
                         socklen_t l)
{
    struct iovec piece = {(void *)from, n};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_name = (void *)a, .msg_namelen = l};
    return send_all(userdata, fd, &message, flags);
}
static ssize_t pd_send(void *userdata, int fd, const void *from, size_t n, int flags)
{
    return pd_sendto(userdata, fd, from, n, flags, NULL, 0);
}
static ssize_t pd_write(void *userdata, int fd, const void *from, size_t n) { return pd_send(userdata, fd, from, n, 0); }

static int pd_poll(void *userdata, struct pollfd *entries, nfds_t count, int timeout_ms)
{
    struct plugin *plugin = userdata;
    struct call call = {.attempt = try_poll, .fd = -1, .entries = entries, .count = count};

    if (timeout_ms >= 0)
        call.deadline_ns = plugin->now_ns + (uint64_t)timeout_ms * 1000000u;
    if (timeout_ms != 0 && !pthread_equal(plugin->first, pthread_self()))
        return (int)make(userdata, &call);
    start_call(userdata);
    return (int)finish(plugin, lr_poll(plugin->stack, entries, count));
}

/* ---- Where the stack is. ---- */

/* A gateway beside the address `text`, which may have a prefix length. 0 if it is no address. */
static int gateway_of(const char *text, char *gateway, size_t size)
{
    char word[INET6_ADDRSTRLEN + 4];
    unsigned char address[16];
    int family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;

    snprintf(word, sizeof word, "%s", text);
    word[strcspn(word, "/")] = '\0';
    if (inet_pton(family, word, address) != 1)
        return 0;
    address[family == AF_INET ? 3 : 15] ^= 3;
    return inet_ntop(family, address, gateway, (socklen_t)size) != NULL;
}

/* Makes the stack from flags: words that are addresses, `mtu=BYTES` or `no-push`. A negative errno if they cannot be read. */
static int start_stack(struct plugin *plugin, const char *flags, long mtu)
{
    char words[256], addresses[256] = "", gateways[256] = "", gateway[INET6_ADDRSTRLEN], *rest = NULL;
    lr_stack_config config;
    lr_device device;
    int result = lr_stack_config_init(&config);

    snprintf(words, sizeof words, "%s", flags);
    for (char *word = strtok_r(words, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        if (strncmp(word, "mtu=", 4) == 0) {
            mtu = strtol(word + 4, NULL, 10);
        } else if (strcmp(word, "no-push") == 0) {
            plugin->no_push = 1;
        } else if (gateway_of(word, gateway, sizeof gateway)) {
            snprintf(addresses + strlen(addresses), sizeof addresses - strlen(addresses), "%s,", word);
            snprintf(gateways + strlen(gateways), sizeof gateways - strlen(gateways), "%s,", gateway);
        } else {
            return -EINVAL;
        }
    }
    config.addresses = addresses[0] != '\0' ? addresses : ADDRESSES;
    config.gateways = addresses[0] != '\0' ? gateways : "192.168.0.2,fd3d:a0b:17d6::2";
    config.memory = 64u << 20;
    config.buffer_max = BUFFER_MAX;
    memset(config.seed, 7, sizeof config.seed); /* the same at every run */
    memset(&device, 0, sizeof device);
    device.user = plugin;
    device.transmit = device_transmit;
    device.receive = device_receive;
    device.mtu = (uint16_t)(mtu < 0 || mtu > MTU_MAX ? MTU_MAX : mtu);
    device.capabilities = LR_DEVICE_IP | LR_DEVICE_RX_COALESCING; /* scripts send more than the MTU */
    config.receive_buffers = 256;
    if (result == 0)
        result = lr_stack_new(&config, &device, plugin->now_ns, &plugin->stack);
    if (result == 0)
        settle(plugin);
    return result;
}

/* The first address that a script names says where the stack is: it starts again there, and what was done to sockets so
 * far is done once more. `local` is null where only the family is known, from the peer's address. */
static void place(struct plugin *plugin, const struct sockaddr *address, int is_local)
{
    const struct sockaddr_in6 *v6 = (const void *)address;
    int is_v6 = address->sa_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
    const void *bytes = is_v6 ? (const void *)&v6->sin6_addr : &((const struct sockaddr_in *)address)->sin_addr;
    char text[INET6_ADDRSTRLEN], flags[INET6_ADDRSTRLEN + 8] = "";

    if (plugin->is_placed || (address->sa_family != AF_INET && address->sa_family != AF_INET6))
        return;
    plugin->is_placed = 1;
    if (address->sa_family == AF_INET6 && !is_v6)
        bytes = v6->sin6_addr.s6_addr + 12;
    if (is_local && inet_ntop(is_v6 ? AF_INET6 : AF_INET, bytes, text, sizeof text) != NULL)
        snprintf(flags, sizeof flags, "%s/%d", text, is_v6 ? 48 : 16);
    lr_stack_free(plugin->stack);
    if (start_stack(plugin, flags, is_v6 ? MTU_IPV6 : MTU) < 0)
        abort(); /* the address came from an inet_ntop */
    for (size_t i = 0; i < plugin->early_count; i++) {
        const struct early *early = &plugin->early[i];
        if (early->is_socket)
            lr_socket(plugin->stack, early->a, early->b, early->c);
        else
            lr_setsockopt(plugin->stack, early->a, early->b, early->c, early->value, early->length);
    }
}

static void remember(struct plugin *plugin, int is_socket, int a, int b, int c, const void *value, socklen_t length)
{
    struct early *early = &plugin->early[plugin->early_count];

    if (plugin->is_placed || plugin->early_count == EARLY_CALLS || length > sizeof early->value)
        return;
    *early = (struct early){.is_socket = is_socket, .a = a, .b = b, .c = c, .length = length};
    if (length > 0)
        memcpy(early->value, value, length);
    plugin->early_count++;
}

static int pd_socket(void *userdata, int domain, int type, int protocol)
{
    struct plugin *plugin = start_call(userdata);
    int fd = lr_socket(plugin->stack, domain, type, protocol);

    if (fd >= 0)
        remember(plugin, 1, domain, type, protocol, NULL, 0);
    if (fd >= 0 && fd < DESCRIPTORS)
        plugin->non_blocking[fd] = (type & SOCK_NONBLOCK) != 0;
    return (int)finish(plugin, fd);
}

static int pd_bind(void *userdata, int fd, const struct sockaddr *address, socklen_t length)
{
    struct plugin *plugin = start_call(userdata);
    place(plugin, address, 1);
    return (int)finish(plugin, lr_bind(plugin->stack, fd, address, length));
}

static int pd_connect(void *userdata, int fd, const struct sockaddr *address, socklen_t length)
{
    struct plugin *plugin = start_call(userdata);
    struct call call = {.attempt = try_connected, .fd = fd};
    int result;

    place(plugin, address, 0);
    result = lr_connect(plugin->stack, fd, address, length);
    if (result == -EINPROGRESS && fd < DESCRIPTORS && !plugin->non_blocking[fd]
        && !pthread_equal(plugin->first, pthread_self())) {
        settle(plugin);
        pthread_mutex_unlock(&plugin->lock);
        return (int)make(userdata, &call);
    }
    return (int)finish(plugin, result);
}

/* ---- The other calls. ---- */

static int pd_listen(void *userdata, int fd, int backlog) { CALL(listen, fd, backlog); }
static int pd_shutdown(void *userdata, int fd, int how) { CALL(shutdown, fd, how); }
static int pd_getsockopt(void *userdata, int fd, int level, int name, void *value, socklen_t *n)
{
    CALL(getsockopt, fd, level, name, value, n);
}

/* The stack under test, if there is one: descriptors are then its. */
static struct plugin *running;

/* Instead of the system's function of this name, for blocks of code. Beside TCP_INFO they always ask for what only Linux
 * has: nothing for TCP_CC_INFO, and zeros for SO_MEMINFO. */
int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict n)
{
    int (*real)(int, int, int, void *, socklen_t *);

    if (running == NULL) {
        *(void **)&real = dlsym(RTLD_NEXT, "getsockopt");
        return real(fd, level, name, value, n);
    }
    if (level == SOL_SOCKET && name == SO_MEMINFO) {
        *n = *n < 9 * sizeof(uint32_t) ? *n : 9 * (socklen_t)sizeof(uint32_t);
        memset(value, 0, *n);
        return 0;
    }
    if (level == IPPROTO_TCP && name == TCP_CC_INFO) {
        *n = 0;
        return 0;
    }
    if (level == IPPROTO_TCP && name == TCP_INFO) {
        socklen_t whole = *n; /* newer kernels have more fields at the end */
        memset(value, 0, whole);
        if (pd_getsockopt(running, fd, level, name, value, n) < 0)
            return -1;
        *n = whole;
        return 0;
    }
    return pd_getsockopt(running, fd, level, name, value, n);
}

static int pd_setsockopt(void *userdata, int fd, int level, int name, const void *value, socklen_t n)
{
    struct plugin *plugin = start_call(userdata);
    int result, bytes;

    if (level == SOL_SOCKET && (name == SO_SNDBUF || name == SO_RCVBUF) && n == sizeof bytes) {
        memcpy(&bytes, value, sizeof bytes);
        bytes = bytes > 0 && bytes < 1 << 29 ? 2 * bytes : bytes;
        value = &bytes;
    }
    result = lr_setsockopt(plugin->stack, fd, level, name, value, n);
    if (result == 0)
        remember(plugin, 0, fd, level, name, value, n);
    return (int)finish(plugin, result);
}

static int pd_close(void *userdata, int fd)
{
    struct plugin *plugin = start_call(userdata);
    if (fd >= 0 && fd < DESCRIPTORS)
        plugin->non_blocking[fd] = 0;
    return (int)finish(plugin, lr_close(plugin->stack, fd));
}

static int pd_fcntl(void *userdata, int fd, int command, ...)
{
    struct plugin *plugin = start_call(userdata);
    int result = lr_fcntl(plugin->stack, fd, F_GETFL, 0);
    va_list arguments;

    if (result >= 0 && fd < DESCRIPTORS && command == F_SETFL) {
        va_start(arguments, command);
        plugin->non_blocking[fd] = va_arg(arguments, int) & O_NONBLOCK;
        va_end(arguments);
        result = 0;
    } else if (result >= 0 && fd < DESCRIPTORS && command == F_GETFL) {
        result = O_RDWR | plugin->non_blocking[fd];
    } else if (result >= 0) {
        result = -EINVAL;
    }
    return (int)finish(plugin, result);
}

static int pd_ioctl(void *userdata, int fd, unsigned long request, ...)
{
    struct plugin *plugin = start_call(userdata);
    va_list arguments;
    void *argument;

    va_start(arguments, request);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    return (int)finish(plugin, lr_ioctl(plugin->stack, fd, request, argument));
}

static int pd_netdev_send(void *userdata, const void *bytes, size_t length)
{
    struct plugin *plugin = start_call(userdata);
    struct packet *packet = length <= MTU_MAX ? queue_add(&plugin->to_stack) : NULL;

    if (packet == NULL)
        return (int)finish(plugin, -EMSGSIZE);
    memcpy(packet->bytes, bytes, length);
    packet->length = length;
    return (int)finish(plugin, 0);
}

/* A stack that will never send anything is told by a length of 0. */
static int pd_netdev_receive(void *userdata, void *bytes, size_t *length, long long *time_us)
{
    struct plugin *plugin = start_call(userdata);
    uint64_t end = plugin->now_ns + PATIENCE_NS;
    struct packet *packet;

    settle(plugin);
    while (plugin->from_stack.count == 0 && plugin->now_ns < end)
        pass(plugin, next_due(plugin, end));
    packet = queue_take(&plugin->from_stack);
    if (packet != NULL && packet->length <= *length) {
        memcpy(bytes, packet->bytes, packet->length);
        *length = packet->length;
        *time_us = (long long)(packet->time_ns / 1000);
    } else {
        *length = 0;
        *time_us = (long long)(plugin->now_ns / 1000);
    }
    return (int)finish(plugin, 0);
}

static int pd_usleep(void *userdata, useconds_t time_us)
{
    struct plugin *plugin = start_call(userdata);
    pass(plugin, plugin->now_ns + (uint64_t)time_us * 1000u);
    return (int)finish(plugin, 0);
}

static int pd_gettimeofday(void *userdata, struct timeval *time, struct timezone *zone)
{
    struct plugin *plugin = start_call(userdata);
    (void)zone;
    plugin->now_ns += TICK_NS;
    if (!pthread_equal(plugin->first, pthread_self())) {
        plugin->is_returning = 0;
        pthread_cond_broadcast(&plugin->changed);
    }
    time->tv_sec = (time_t)(plugin->now_ns / 1000000000u);
    time->tv_usec = (suseconds_t)(plugin->now_ns / 1000u % 1000000u);
    pthread_mutex_unlock(&plugin->lock);
    return 0;
}

static int missing(void)
{
    errno = ENOSYS;
    return -1;
}

static int pd_epoll_create(void *u, int n) { (void)u, (void)n; return missing(); }
static int pd_epoll_ctl(void *u, int e, int o, int f, struct epoll_event *v)
{
    (void)u, (void)e, (void)o, (void)f, (void)v;
    return missing();
}
static int pd_epoll_wait(void *u, int e, struct epoll_event *v, int n, int t)
{
    (void)u, (void)e, (void)v, (void)n, (void)t;
    return missing();
}
static int pd_pipe(void *u, int fds[2]) { (void)u, (void)fds; return missing(); }
static int pd_splice(void *u, int i, off_t *io, int o, off_t *oo, size_t n, unsigned f)
{
    (void)u, (void)i, (void)io, (void)o, (void)oo, (void)n, (void)f;
    return missing();
}

static void pd_free(void *userdata)
{
    struct plugin *plugin = userdata;
    running = NULL;
    if (plugin != NULL)
        lr_stack_free(plugin->stack);
    free(plugin);
}

/* Null without memory, or with flags that cannot be read. */
static struct plugin *plugin_new(const char *flags)
{
    struct plugin *plugin = calloc(1, sizeof *plugin);

    if (plugin == NULL)
        return NULL;
    pthread_mutex_init(&plugin->lock, NULL);
    pthread_cond_init(&plugin->changed, NULL);
    plugin->first = pthread_self();
    plugin->now_ns = 1000000000u;
    plugin->is_placed = flags != NULL && strpbrk(flags, ".:") != NULL;
    if (start_stack(plugin, flags != NULL ? flags : "", MTU) < 0) {
        free(plugin);
        return NULL;
    }
    return plugin;
}

void packetdrill_interface_init(const char *flags, struct packetdrill_interface *table)
{
    static const struct packetdrill_interface ours = {
        NULL, pd_free, pd_socket, pd_bind, pd_listen, pd_accept, pd_connect, pd_read, pd_readv, pd_recv,
        pd_recvfrom, pd_recvmsg, pd_write, pd_writev, pd_send, pd_sendto, pd_sendmsg, pd_fcntl, pd_ioctl,
        pd_close, pd_shutdown, pd_getsockopt, pd_setsockopt, pd_poll, pd_netdev_send, pd_netdev_receive,
        pd_usleep, pd_gettimeofday, pd_epoll_create, pd_epoll_ctl, pd_epoll_wait, pd_pipe, pd_splice,
    };
    *table = ours;
    table->userdata = plugin_new(flags);
    if (table->userdata == NULL) {
        fprintf(stderr, "linerate: --so_flags=%s: expected addresses with prefix lengths, mtu=BYTES, no-push\n", flags);
        abort(); /* the interface has no way to say it */
    }
    running = table->userdata;
}
