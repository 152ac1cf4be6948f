/*
 * lwIP behind iperf3's control protocol, for one stream: `lwip-peer TAP`, on a TAP that is there and up. Frames are read into
 * lwIP's own buffers and written from them, one system call each, without offloads; what it sends it refers to and does not copy.
 */

#include "lwip/etharp.h"
#include "lwip/init.h"
#include "lwip/tcp.h"
#include "lwip/timeouts.h"
#include "netif/ethernet.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
    PORT = 5201,
    FRAME = 1514,
    /* Frames that are read before timers are looked at. */
    BATCH = 64,
    /* Bytes by which a client names its test, first on each connection. */
    COOKIE = 37,
    TEXT = 8 << 10,
};

/* States of a test, as iperf3 names and numbers them. */
enum {
    TEST_START = 1,
    TEST_RUNNING = 2,
    TEST_END = 4,
    PARAM_EXCHANGE = 9,
    CREATE_STREAMS = 10,
    EXCHANGE_RESULTS = 13,
    DISPLAY_RESULTS = 14,
};

enum step { NAMED, PARAMETERS, STREAMS, RUNNING, RESULTS, OVER };

/* The test that runs. */
static struct {
    struct tcp_pcb *control, *stream;
    enum step step;
    int reverse;
    char inbox[TEXT];
    size_t held;
    unsigned long long received, sent;
} test;

static int tap;
static unsigned char data[64 << 10];

u32_t sys_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static err_t transmit(struct netif *netif, struct pbuf *frame)
{
    struct iovec parts[16];
    int count = 0;
    (void)netif;
    for (struct pbuf *part = frame; part; part = part->next) {
        if (count == 16)
            return ERR_BUF;
        parts[count++] = (struct iovec){part->payload, part->len};
    }
    return writev(tap, parts, count) < 0 ? ERR_BUF : ERR_OK;
}

static err_t set_up(struct netif *netif)
{
    const unsigned char mac[ETH_HWADDR_LEN] = {2, 0, 0, 0, 0, 4};
    netif->name[0] = 't';
    netif->name[1] = 'p';
    netif->mtu = 1500;
    netif->hwaddr_len = ETH_HWADDR_LEN;
    memcpy(netif->hwaddr, mac, sizeof mac);
    netif->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET;
    netif->output = etharp_output;
    netif->linkoutput = transmit;
    return ERR_OK;
}

static void say(const void *bytes, size_t len)
{
    if (test.control && tcp_write(test.control, bytes, len, TCP_WRITE_FLAG_COPY) == ERR_OK)
        tcp_output(test.control);
}

static void say_state(unsigned char state)
{
    say(&state, 1);
}

static void drop_first(size_t len)
{
    test.held -= len;
    memmove(test.inbox, test.inbox + len, test.held);
}

/* The length of the text in front of the inbox once it is whole, else 0. */
static size_t message(void)
{
    if (test.held < 4)
        return 0;
    const unsigned char *head = (const unsigned char *)test.inbox;
    size_t len = (size_t)head[0] << 24 | head[1] << 16 | head[2] << 8 | head[3];
    return len && test.held >= 4 + len ? len : 0;
}

static void report(void)
{
    char text[512];
    unsigned long long moved = test.reverse ? test.sent : test.received;
    int len = snprintf(text + 4, sizeof text - 4,
        "{\"cpu_util_total\":0,\"cpu_util_user\":0,\"cpu_util_system\":0,\"sender_has_retransmits\":%d,"
        "\"streams\":[{\"id\":1,\"bytes\":%llu,\"retransmits\":-1,\"jitter\":0,\"errors\":0,\"packets\":0,"
        "\"start_time\":0,\"end_time\":0}]}",
        test.reverse ? 0 : -1, moved);
    text[0] = text[1] = 0;
    text[2] = len >> 8;
    text[3] = len;
    say(text, 4 + len);
    say_state(DISPLAY_RESULTS);
}

/* One step of the control connection, if what it needs is there. */
static int advance(void)
{
    size_t len = message();
    switch (test.step) {
    case NAMED:
        if (test.held < COOKIE)
            return 0;
        drop_first(COOKIE);
        say_state(PARAM_EXCHANGE);
        test.step = PARAMETERS;
        return 1;
    case PARAMETERS:
        if (!len)
            return 0;
        test.inbox[4 + len - 1] = 0;
        test.reverse = strstr(test.inbox + 4, "\"reverse\":true") != NULL;
        drop_first(4 + len);
        say_state(CREATE_STREAMS);
        test.step = STREAMS;
        return 1;
    case RUNNING:
        if (!test.held || test.inbox[0] != TEST_END)
            return 0;
        drop_first(1);
        say_state(EXCHANGE_RESULTS);
        test.step = RESULTS;
        return 1;
    case RESULTS:
        if (!len)
            return 0;
        drop_first(4 + len);
        report();
        test.step = OVER;
        return 1;
    default:
        return 0;
    }
}

static void fill(struct tcp_pcb *pcb)
{
    while (test.reverse && test.step == RUNNING) {
        size_t len = LWIP_MIN((size_t)tcp_sndbuf(pcb), sizeof data - 1);
        if (!len || tcp_write(pcb, data, len, 0) != ERR_OK)
            break;
        test.sent += len;
    }
    tcp_output(pcb);
}

/* Sends no more and forgets it; what is under way lwIP still delivers. */
static void end(struct tcp_pcb **pcb)
{
    if (!*pcb)
        return;
    tcp_arg(*pcb, NULL);
    tcp_recv(*pcb, NULL);
    tcp_sent(*pcb, NULL);
    tcp_err(*pcb, NULL);
    if (tcp_close(*pcb) != ERR_OK)
        tcp_abort(*pcb);
    *pcb = NULL;
}

static err_t on_sent(void *arg, struct tcp_pcb *pcb, u16_t len)
{
    (void)arg;
    (void)len;
    fill(pcb);
    return ERR_OK;
}

static err_t on_stream(void *arg, struct tcp_pcb *pcb, struct pbuf *bytes, err_t error)
{
    (void)arg;
    (void)error;
    if (!bytes) {
        end(&test.stream);
        return ERR_OK;
    }
    unsigned long long before = test.received;
    test.received += bytes->tot_len;
    tcp_recved(pcb, bytes->tot_len);
    pbuf_free(bytes);
    if (before < COOKIE && test.received >= COOKIE && test.step == STREAMS) {
        const unsigned char states[2] = {TEST_START, TEST_RUNNING};
        say(states, sizeof states);
        test.step = RUNNING;
        test.received -= COOKIE;
        fill(pcb);
    }
    return ERR_OK;
}

static err_t on_control(void *arg, struct tcp_pcb *pcb, struct pbuf *bytes, err_t error)
{
    (void)arg;
    (void)error;
    if (!bytes) {
        end(&test.stream);
        end(&test.control);
        memset(&test, 0, sizeof test);
        return ERR_OK;
    }
    size_t room = sizeof test.inbox - test.held;
    test.held += pbuf_copy_partial(bytes, test.inbox + test.held, LWIP_MIN(room, bytes->tot_len), 0);
    tcp_recved(pcb, bytes->tot_len);
    pbuf_free(bytes);
    while (advance())
        ;
    /* A client that receives waits for the end of the stream. */
    if (test.reverse && test.step >= RESULTS)
        end(&test.stream);
    return ERR_OK;
}

static void on_failed(void *arg, err_t error)
{
    struct tcp_pcb **pcb = arg;
    (void)error;
    *pcb = NULL;
    if (pcb == &test.control)
        memset(&test, 0, sizeof test);
}

static err_t on_accepted(void *arg, struct tcp_pcb *pcb, err_t error)
{
    (void)arg;
    (void)error;
    struct tcp_pcb **place = test.control ? &test.stream : &test.control;
    if (*place) {
        tcp_abort(pcb);
        return ERR_ABRT;
    }
    *place = pcb;
    tcp_nagle_disable(pcb);
    tcp_arg(pcb, place);
    tcp_err(pcb, on_failed);
    tcp_recv(pcb, place == &test.control ? on_control : on_stream);
    if (place == &test.stream)
        tcp_sent(pcb, on_sent);
    return ERR_OK;
}

static int open_tap(const char *name)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    return fd < 0 || ioctl(fd, TUNSETIFF, &request) < 0 ? -1 : fd;
}

/* Reads what is there, so much at most; whether that was all. */
static int receive(struct netif *netif)
{
    for (int count = 0; count < BATCH; count++) {
        struct pbuf *frame = pbuf_alloc(PBUF_RAW, FRAME, PBUF_POOL);
        if (!frame)
            return 0;
        ssize_t len = read(tap, frame->payload, frame->len);
        if (len <= 0) {
            pbuf_free(frame);
            return 1;
        }
        pbuf_realloc(frame, len);
        if (netif->input(frame, netif) != ERR_OK)
            pbuf_free(frame);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2 || (tap = open_tap(argv[1])) < 0) {
        fprintf(stderr, "expected the name of a TAP: %s\n", argc == 2 ? strerror(errno) : "no argument");
        return 2;
    }
    static struct netif netif;
    ip4_addr_t address, mask, gateway;
    IP4_ADDR(&address, 192, 168, 1, 4);
    IP4_ADDR(&mask, 255, 255, 255, 0);
    IP4_ADDR(&gateway, 0, 0, 0, 0);
    memset(data, 7, sizeof data);
    lwip_init();
    netif_add(&netif, &address, &mask, &gateway, NULL, set_up, ethernet_input);
    netif_set_default(&netif);
    netif_set_up(&netif);
    netif_set_link_up(&netif);
    struct tcp_pcb *listener = tcp_new();
    if (!listener || tcp_bind(listener, IP_ADDR_ANY, PORT) != ERR_OK)
        return 1;
    tcp_accept(tcp_listen(listener), on_accepted);
    puts("Ready");
    fflush(stdout);
    for (;;) {
        int all = receive(&netif);
        sys_check_timeouts();
        if (all) {
            struct pollfd wait = {.fd = tap, .events = POLLIN};
            poll(&wait, 1, LWIP_MIN(sys_timeouts_sleeptime(), 50u));
        }
    }
}
